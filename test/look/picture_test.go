package look

import (
	"image"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The page is looked at as far as the first weeks; the picture alone whole.
const (
	pageWide, pageTall = 1280, 1180
	svgWide, svgTall   = 1264, 700
)

// tolerated is the difference that other fonts may make: see the test that
// measures it with the fonts of this machine.
const tolerated = 2.5

func TestThePageLooksAsItDid(t *testing.T) {
	page := calendar(t, "-o", "html")
	for _, s := range schemes() {
		t.Run(s.name, func(t *testing.T) {
			got := shot(t, page, "html", s, pageWide, pageTall)
			stored := filepath.Join("testdata", "page-"+s.name+".png")
			if os.Getenv("UPDATE_PICTURES") != "" {
				keep(t, stored, got)
			}
			if d := difference(got, readPNG(t, stored)); d > tolerated {
				mine := filepath.Join(os.TempDir(), "page-"+s.name+".png")
				keep(t, mine, got)
				t.Errorf("differs by %.1f of at most %.1f from %s: look at %s, and run with UPDATE_PICTURES=1 if it is right", d, tolerated, stored, mine)
			}
			if corner := at(got, 2, 2); corner.dark() != (s.name == "dark") {
				t.Errorf("in %s mode the page has the colour %v", s.name, corner)
			}
		})
	}
}

func keep(t *testing.T, path string, picture image.Image) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(f, picture); err != nil {
		t.Fatal(err)
	}
}

// A comparison that never fails proves nothing, and one that fails with every
// other font is switched off: it has to tell these two apart.
func TestTheComparisonSeesBarsAndOverlooksFonts(t *testing.T) {
	light := schemes()[0]
	page := calendar(t, "-o", "html")
	stored := readPNG(t, "testdata/page-light.png")
	sans := regexp.MustCompile(`system-ui[^};]*sans-serif`)
	for _, font := range []string{"serif", "monospace"} {
		d := difference(shot(t, sans.ReplaceAllString(page, font), "html", light, pageWide, pageTall), stored)
		t.Logf("in %s: %.2f", font, d)
		if d > tolerated {
			t.Errorf("in %s the page differs by %.1f, more than is tolerated", font, d)
		}
	}
	for what, other := range map[string]string{
		"no bars":     strings.ReplaceAll(page, "<rect ", "<desc "),
		"other weeks": calendar(t, "-o", "html", "--from", "2026-04-20"),
	} {
		d := difference(shot(t, other, "html", light, pageWide, pageTall), stored)
		t.Logf("%s: %.2f", what, d)
		if d <= tolerated {
			t.Errorf("%s: a difference of %.1f is overlooked", what, d)
		}
	}
}

// The columns are worked out here again: 200 for the names, 150 for a day.
func column(day int, hour float64) float64 { return 200 + 150*(float64(day)+hour/24) }

func TestBarsStandWhereTheirHoursAre(t *testing.T) {
	svg := calendar(t, "-o", "svg")
	colours := map[string]struct{ paper, window pixel }{
		"light": {pixel{255, 255, 255}, pixel{0x1c, 0x7a, 0x55}},
		"dark":  {pixel{0x0f, 0x14, 0x1a}, pixel{0x46, 0xc0, 0x8f}},
	}
	for _, s := range schemes() {
		t.Run(s.name, func(t *testing.T) {
			picture, colour := shot(t, svg, "svg", s, svgWide, svgTall), colours[s.name]
			if got := at(picture, 2, 2); !got.near(colour.paper) {
				t.Errorf("paper is %v, want %v", got, colour.paper)
			}
			for _, bar := range []struct {
				name        string
				left, right float64
			}{
				{"Tuesday 22:00 to Wednesday 04:00", column(1, 22), column(2, 4)},
				{"Friday 20:00 to Saturday 08:00", column(4, 20), column(5, 8)},
				{"Saturday 01:00 to 05:00", column(5, 1), column(5, 5)},
				// That Sunday has 23 hours: 01:00 to 06:00 are its second to fifth.
				{"Sunday 01:00 to 06:00", column(6, 24.0/23), column(6, 5*24.0/23)},
			} {
				y, ok := barIn(svg, bar.left)
				if !ok {
					t.Errorf("%s: no bar begins at %.1f", bar.name, bar.left)
					continue
				}
				for x, want := range map[int]bool{
					int(bar.left) - 3: false, int(bar.left) + 3: true, int(bar.left+bar.right) / 2: true, int(bar.right) - 3: true, int(bar.right) + 3: false,
				} {
					if got := at(picture, x, y); got.near(colour.window) != want {
						t.Errorf("%s: at %d, %d is %v; bar: %v", bar.name, x, y, got, want)
					}
				}
			}
		})
	}
}

// barIn is the height at which the first bar that begins at a column stands.
func barIn(svg string, left float64) (int, bool) {
	for _, found := range regexp.MustCompile(`<rect class="window" x="([0-9.]+)" y="([0-9.]+)" width="[0-9.]+" height="([0-9.]+)"`).FindAllStringSubmatch(svg, -1) {
		x, _ := strconv.ParseFloat(found[1], 64)
		y, _ := strconv.ParseFloat(found[2], 64)
		tall, _ := strconv.ParseFloat(found[3], 64)
		if x-left < 0.1 && left-x < 0.1 && y > 150 { // above is the legend
			return int(y + tall/2), true
		}
	}
	return 0, false
}
