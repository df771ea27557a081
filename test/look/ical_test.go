package look

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// event is a VEVENT as ical.js understands it.
type event struct {
	UID, Zone, Summary, Description, Status string
	Start, End, Stamp                       time.Time
}

// reader installs ical.js as tools/ical pins it, once, below bin/.
func reader(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing(t, "%s is not here, and without it nobody else reads the feed: install Node.js 20 or later", tool)
		}
	}
	folder, err := filepath.Abs("../../bin/ical")
	if err != nil {
		t.Fatal(err)
	}
	fresh := copied(t, "../../tools/ical", folder, "package.json", "package-lock.json", "read.mjs")
	if _, err := os.Stat(filepath.Join(folder, "node_modules", "ical.js")); err != nil || fresh {
		install := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		install.Dir = folder
		if said, err := install.CombinedOutput(); err != nil {
			_ = os.RemoveAll(folder) // the next attempt begins anew
			missing(t, "ical.js could not be installed: npm ci: %v\n%s", err, said)
		}
	}
	return filepath.Join(folder, "read.mjs")
}

// copied brings files into a folder, and says whether any is news there.
func copied(t *testing.T, from, to string, names ...string) bool {
	t.Helper()
	if err := os.MkdirAll(to, 0o750); err != nil {
		t.Fatal(err)
	}
	news := false
	for _, name := range names {
		want, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if have, err := os.ReadFile(filepath.Join(to, name)); err == nil && bytes.Equal(have, want) {
			continue
		}
		news = true
		if err := os.WriteFile(filepath.Join(to, name), want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return news
}

func events(t *testing.T, feed string) []event {
	t.Helper()
	command := exec.Command("node", reader(t))
	command.Stdin = strings.NewReader(feed)
	var out []event
	for decoder := json.NewDecoder(bytes.NewReader(run(t, command))); ; {
		var e event
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
}

func TestAnotherParserReadsTheSameInstantsFromTheFeed(t *testing.T) {
	got := events(t, calendar(t, "-o", "ics"))
	var drawn struct {
		Items []struct {
			Start, End *time.Time
			Owner      struct{ Kind, Name string }
		}
	}
	if err := json.Unmarshal([]byte(calendar(t, "-o", "json")), &drawn); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(drawn.Items) || len(got) < 50 {
		t.Fatalf("the feed has %d events, the calendar %d entries", len(got), len(drawn.Items))
	}
	uids := map[string]bool{}
	for i, entry := range drawn.Items {
		end := entry.End
		if end == nil {
			end = entry.Start
		}
		if entry.Start != nil && !entry.Start.Equal(got[i].Start) {
			t.Errorf("%+v: its start is %s to ical.js, not %s", entry.Owner, stamp(got[i].Start), stamp(*entry.Start))
		}
		if end != nil && !end.Equal(got[i].End) {
			t.Errorf("%+v: its end is %s to ical.js, not %s", entry.Owner, stamp(got[i].End), stamp(*end))
		}
		if got[i].Zone != "UTC" && got[i].Zone != "Z" {
			t.Errorf("%+v: an event in zone %q", entry.Owner, got[i].Zone)
		}
		if uids[got[i].UID] {
			t.Errorf("%+v: its UID %s is there already", entry.Owner, got[i].UID)
		}
		uids[got[i].UID] = true
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// What is in the documents, worked out by hand.
func TestTheFeedSaysWhatTheDocumentsSay(t *testing.T) {
	all := map[string]event{}
	for _, e := range events(t, calendar(t, "-o", "ics")) {
		all[e.Summary+" "+stamp(e.Start)] = e
	}
	for _, want := range []struct{ summary, start, end, status string }{
		{"nightly: change permitted", "2026-03-27T19:00:00Z", "2026-03-28T07:00:00Z", "CONFIRMED"},
		{"nightly: change permitted", "2026-04-02T20:00:00Z", "2026-04-02T22:00:00Z", "CONFIRMED"}, // Good Friday cuts it at midnight
		{"weekends: change permitted", "2026-03-29T00:00:00Z", "2026-03-29T04:00:00Z", "CONFIRMED"},
		{"nightly: frozen: Good Friday", "2026-04-02T22:00:00Z", "2026-04-03T22:00:00Z", "CONFIRMED"},
		{"nightly: frozen: Easter Monday", "2026-04-05T22:00:00Z", "2026-04-06T22:00:00Z", "CONFIRMED"},
		{"nightly: frozen: Spring sale: nothing changes, whatever it is; ask the shop's owners", "2026-04-12T22:00:00Z", "2026-04-17T22:00:00Z", "CONFIRMED"},
		{"orders-weekly", "2026-03-26T01:30:00Z", "2026-03-26T01:30:00Z", "CONFIRMED"},
		{"orders-weekly (does not start)", "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z", "TENTATIVE"}, // 02:30 does not exist
	} {
		e, ok := all[want.summary+" "+want.start]
		if !ok || stamp(e.End) != want.end || e.Status != want.status {
			t.Errorf("want %+v, got %+v", want, e)
		}
	}
}

func TestTheFeedIsTheSameWheneverItIsRead(t *testing.T) {
	once := calendar(t, "-o", "ics")
	if again := calendar(t, "-o", "ics"); once != again {
		t.Error("two readings differ")
	}
}
