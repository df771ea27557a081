package document_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "30d": 720 * time.Hour, "0d": 0, "36500d": 36500 * 24 * time.Hour} {
		got, err := document.ParseDuration(text)
		if err != nil || got.Duration != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		back, err := got.MarshalText()
		again, err2 := document.ParseDuration(string(back))
		if err != nil || err2 != nil || again != got {
			t.Errorf("%s comes back as %s", text, again)
		}
	}
	for _, text := range []string{"", "90", "30d12h", "-1d", "36501d", "1 d", "d", "99999999999999999999d", "1h ", "1.5d"} {
		if got, err := document.ParseDuration(text); err == nil {
			t.Errorf("%q was read as %s", text, got)
		}
	}
}

func TestCutKeepsRunesWhole(t *testing.T) {
	for _, s := range []string{"short", strings.Repeat("ä", 100), strings.Repeat("€", 100), strings.Repeat("\x80", 100), strings.Repeat("🙂", 50)} {
		for n := 10; n < 60; n++ {
			got := document.Cut(s, n)
			if len(got) > n || len(s) > n && !strings.HasSuffix(got, "…") || utf8.ValidString(s) && !utf8.ValidString(got) {
				t.Errorf("Cut(%q, %d) = %q", s, n, got)
			}
			if utf8.ValidString(s) && len(s) > n && len(got) <= n-2*utf8.UTFMax {
				t.Errorf("Cut(%q, %d) = %q is cut more than it has to be", s, n, got)
			}
		}
	}
	if got := document.Cut("ten bytes!", 10); got != "ten bytes!" {
		t.Errorf("what just fits is cut to %q", got)
	}
}
