package look

import (
	"context"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scheme is what the looker prefers, as Chromium counts it.
type scheme struct {
	name   string
	number int
}

func schemes() []scheme { return []scheme{{"light", 1}, {"dark", 0}} }

// browser finds Chromium by the names that it has.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	missing(t, "no Chromium is here, and without it nobody looks at the page: apt-get install chromium, or set CHROMIUM")
	return ""
}

// shot is what a browser shows of a document, one pixel for each of the page's.
func shot(t *testing.T, document, ending string, in scheme, width, height int) image.Image {
	t.Helper()
	chromium := browser(t)
	folder := t.TempDir()
	file, out := filepath.Join(folder, "page."+ending), filepath.Join(folder, "page.png")
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // some 2 s; a guess for a busy machine
	defer cancel()
	shows := []string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--hide-scrollbars", "--force-device-scale-factor=1", "--force-color-profile=srgb",
		"--blink-settings=preferredColorScheme=" + strconv.Itoa(in.number),
		"--window-size=" + strconv.Itoa(width) + "," + strconv.Itoa(height), "--screenshot=" + out,
	}
	for try := 1; ; try++ {
		command := exec.CommandContext(ctx, chromium, append(shows, "--user-data-dir="+filepath.Join(folder, fmt.Sprint("profile", try)), "file://"+file)...)
		said, err := command.CombinedOutput()
		switch {
		case err == nil:
			return readPNG(t, out)
		case try == tries || ctx.Err() != nil || command.ProcessState.ExitCode() != -1: // not ended by a signal
			t.Fatalf("%s: %v\n%s", strings.Join(command.Args, " "), err, said)
		}
		t.Logf("Chromium crashed, and is started again: %v", err)
	}
}

// tries are how often Chromium is started where it crashes by itself: some builds end with
// SIGSEGV at start, one time in a hundred or fewer. A page that it cannot show is no crash.
const tries = 3

func readPNG(t *testing.T, path string) image.Image {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return picture
}

// pixel is a colour of 8 bits a channel.
type pixel [3]int

func at(picture image.Image, x, y int) pixel {
	r, g, b, _ := picture.At(x, y).RGBA()
	return pixel{int(r >> 8), int(g >> 8), int(b >> 8)}
}

func (p pixel) near(o pixel) bool { return p.distance(o) <= 3*6 }

func (p pixel) distance(o pixel) int {
	sum := 0
	for i := range p {
		sum += max(p[i]-o[i], o[i]-p[i])
	}
	return sum
}

func (p pixel) dark() bool { return p[0]+p[1]+p[2] < 3*64 }

// block is how many pixels on a side are looked at as one: letters of another
// font make a block hardly lighter, a bar that is missing makes many so.
const block = 16

// difference is how far two pictures are apart: the mean over blocks, 0 for
// none, 255 for black to white.
func difference(a, b image.Image) float64 {
	size := a.Bounds().Intersect(b.Bounds())
	sum, n := 0.0, 0
	for y := 0; y+block <= size.Dy(); y += block {
		for x := 0; x+block <= size.Dx(); x += block {
			p, q := mean(a, x, y), mean(b, x, y)
			for i := range p {
				sum += max(p[i]-q[i], q[i]-p[i])
				n++
			}
		}
	}
	return sum / float64(n)
}

func mean(picture image.Image, left, top int) (out [3]float64) {
	for y := top; y < top+block; y++ {
		for x := left; x < left+block; x++ {
			for i, v := range at(picture, x, y) {
				out[i] += float64(v) / block / block
			}
		}
	}
	return out
}
