package look

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// phoneWide is how many pixels of the page's a usual phone shows side by side.
const phoneWide = 390

// layout is how a page lies on a screen, in the page's pixels.
type layout struct {
	Page     int     `json:"page"`     // width, with what has to be scrolled sideways to
	Regions  []int   `json:"regions"`  // widths of those that scroll by themselves
	Wider    int     `json:"wider"`    // of them, whose content is wider
	Smallest float64 `json:"smallest"` // size of the smallest letters
}

// onPhone asks a browser how it lays a page out. It has no window as narrow as a phone, but frames.
func onPhone(t *testing.T, page string) layout {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "phone.html")
	frame := `<!DOCTYPE html><iframe width="` + fmt.Sprint(phoneWide) + `" height="844" style="border:0" srcdoc="` + html.EscapeString(page) + `" onload="
const d = this.contentDocument, all = [...d.querySelectorAll('.scroll')];
document.getElementById('out').textContent = JSON.stringify({
  page: d.documentElement.scrollWidth, regions: all.map(e => e.getBoundingClientRect().width | 0),
  wider: all.filter(e => e.scrollWidth > e.clientWidth).length,
  smallest: Math.min(...[...d.querySelectorAll('h1,h2,p,th,td,caption,.badge')].map(e => parseFloat(getComputedStyle(e).fontSize)))
})"></iframe><pre id="out"></pre>`
	if err := os.WriteFile(file, []byte(frame), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dom := string(run(t, exec.CommandContext(ctx, browser(t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
		"--user-data-dir="+filepath.Join(folder, "profile"), "--dump-dom", "file://"+file)))
	_, said, found := strings.Cut(dom, `<pre id="out">`)
	said, _, ended := strings.Cut(said, "</pre>")
	var out layout
	if err := json.Unmarshal([]byte(html.UnescapeString(said)), &out); !found || !ended || err != nil {
		t.Fatalf("the browser says %q: %v", said, err)
	}
	return out
}

// On a phone the page itself does not move sideways: tables and the picture do, each by itself.
func TestThePageIsUsableOnAPhone(t *testing.T) {
	got := onPhone(t, calendar(t, "-o", "html", "--from", "2026-03-23", "--to", "2026-04-06"))
	if got.Page > phoneWide {
		t.Errorf("the page is %d pixels wide, more than the %d of a phone", got.Page, phoneWide)
	}
	if len(got.Regions) != 3 || got.Wider == 0 {
		t.Errorf("%d regions scroll by themselves, %d of them have to: want 3, and the picture at least", len(got.Regions), got.Wider)
	}
	for _, wide := range got.Regions {
		if wide > phoneWide || wide < phoneWide*3/4 {
			t.Errorf("a region is %d pixels wide", wide)
		}
	}
	if got.Smallest < 11 {
		t.Errorf("letters of %.1f pixels cannot be read on a phone", got.Smallest)
	}
}
