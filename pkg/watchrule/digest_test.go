package watchrule

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// What an earlier version noted of an object is compared with what this one notes.
func TestTheDigestOfFieldsIsThatOfTheirListAsJSON(t *testing.T) {
	body := map[string]any{"data": map[string]any{"b": "<x>", "a": int64(1)}, "spec": map[string]any{"size": int64(3)}}
	mac := hmac.New(sha256.New, []byte("p/u"))
	mac.Write(asText([]any{picked(t, body, "data"), picked(t, body, "spec.size")}))
	want := base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:10])
	for _, fields := range [][]string{{"data", "spec.size"}, {"data", "spec.size", "$.data", "{.spec.size}", "data"}} {
		if got := newDigester(plan.Watch{Fields: fields}, "p", "").of("u", body); got != want {
			t.Errorf("%v: %s, want %s", fields, got, want)
		}
	}
}

func picked(t *testing.T, body map[string]any, field string) any {
	t.Helper()
	steps, err := expr.ParsePath(field)
	if err != nil {
		t.Fatal(err)
	}
	return expr.Pick(body, steps)
}

// One field in twenty spellings would be written out twenty times.
func TestAFieldIsReadOnceHoweverItIsSpelt(t *testing.T) {
	var fields []string
	for i := range 20 {
		fields = append(fields, "data."+"payload"[:i%7]+`\`+"payload"[i%7:])
	}
	d := newDigester(plan.Watch{Fields: fields}, "p", "")
	if len(d.paths) != 1 {
		t.Fatalf("%d paths", len(d.paths))
	}
	body := map[string]any{"data": map[string]any{"payload": strings.Repeat("<", 100_000)}}
	if per := testing.AllocsPerRun(3, func() { d.of("u", body) }); per > 50 {
		t.Errorf("%f allocations", per)
	}
}
