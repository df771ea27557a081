package nodes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

func span(d time.Duration) *document.Duration { return &document.Duration{Duration: d} }

func TestWhatARequestAsks(t *testing.T) {
	plain := func(change ...func(*nodes.Request)) nodes.Request {
		r := nodes.Request{
			Requestor: "gpu-operator", Cordon: true,
			Drain: &drain.Options{Timeout: span(drain.DefaultDrainTimeout), OnTimeout: drain.TimeoutRetry},
		}
		for _, c := range change {
			c(&r)
		}
		return r
	}
	full := `{"reason": "driver 560", "cordon": true, "priority": 5, "shared": true, "failed": false,
 "waitFor": {"podSelector": "app=important", "timeout": "0s"},
 "drain": {"force": true, "podSelector": "a in (b, c)", "timeout": "0s", "deleteEmptyDir": true, "gracePeriod": "30s",
           "evictionFilters": [{"byResourceNameRegex": "nvidia.com/gpu-*"}], "onTimeout": "skip", "podTimeout": "1m"}}`
	for name, c := range map[string]struct {
		value string
		want  nodes.Request
	}{
		"an empty value asks with all defaults":    {"", plain()},
		"so does an empty object":                  {"{}", plain()},
		"and white space":                          {" \n", plain()},
		"drain false cordons and does not drain":   {`{"drain":false}`, plain(func(r *nodes.Request) { r.Drain = nil })},
		"drain true is a drain with defaults":      {`{"drain":true}`, plain()},
		"an empty drain is a drain with defaults":  {`{"drain":{}}`, plain()},
		"null is absent":                           {`{"cordon":null,"drain":null,"waitFor":null,"priority":null}`, plain()},
		"empty durations are absent":               {`{"drain":{"timeout":"","gracePeriod":"","podTimeout":"","onTimeout":""}}`, plain()},
		"cordon false leaves the node schedulable": {`{"cordon":false}`, plain(func(r *nodes.Request) { r.Cordon = false })},
		"waitFor without a timeout has no end":     {`{"waitFor":{"podSelector":"app","timeout":""}}`, plain(func(r *nodes.Request) { r.WaitFor = &nodes.WaitFor{PodSelector: "app"} })},
		"an escape that YAML does not know":        {`{"reason":"\ud83d\ude00\/"}`, plain(func(r *nodes.Request) { r.Reason = "😀/" })},
		"everything": {full, nodes.Request{
			Requestor: "gpu-operator", Reason: "driver 560", Cordon: true, Priority: 5, Shared: true,
			WaitFor: &nodes.WaitFor{PodSelector: "app=important"},
			Drain: &drain.Options{
				Force: true, PodSelector: "a in (b, c)", Timeout: span(0), DeleteEmptyDir: true, GracePeriod: span(30 * time.Second),
				EvictionFilters: []drain.EvictionFilter{{ByResourceNameRegex: "nvidia.com/gpu-*"}}, OnTimeout: drain.TimeoutSkip, PodTimeout: span(time.Minute),
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := nodes.Parse("gpu-operator", c.value)
			if err != nil {
				t.Fatal(err)
			}
			if got.Identity == "" {
				t.Error("the value has no identity")
			}
			got.Identity = ""
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatIsWrongWithARequest(t *testing.T) {
	for name, c := range map[string]struct {
		requestor, value string
		want             []string // one sentence each
	}{
		"a field that is not known, with a suggestion": {"gpu", `{"priorty":1}`, []string{`priorty: unknown field; did you mean "priority"?`}},
		"one within drain":                           {"gpu", `{"drain":{"onTimout":"skip"}}`, []string{`drain.onTimout: unknown field; did you mean "onTimeout"?`}},
		"a wrong type":                               {"gpu", `{"shared":"yes"}`, []string{`shared: must be true or false, is "yes"`}},
		"a priority that is no whole number":         {"gpu", `{"priority":1.5}`, []string{`priority: must be a whole number`}},
		"a priority that no age would overtake":      {"gpu", `{"priority":1001}`, []string{`priority: must be from -1000 to 1000, is 1001`}},
		"a drain that is a word":                     {"gpu", `{"drain":"no"}`, []string{`drain: must be an object, is "no"`}},
		"a regular expression that does not compile": {"gpu", `{"drain":{"evictionFilters":[{"byResourceNameRegex":"("}]}}`, []string{`drain.evictionFilters[0].byResourceNameRegex: "(" does not compile`}},
		"a word for onTimeout that is none":          {"gpu", `{"drain":{"onTimeout":"give up"}}`, []string{`drain.onTimeout: must be retry, skip, force or abort, is "give up"`}},
		"a duration that is none":                    {"gpu", `{"drain":{"timeout":"5"}}`, []string{`drain.timeout: "5" is no duration`}},
		"a negative wait":                            {"gpu", `{"waitFor":{"timeout":"-1s"}}`, []string{`waitFor.timeout: must not be negative`}},
		"a selector that is none":                    {"gpu", `{"waitFor":{"podSelector":"app=="}, "drain":{"podSelector":"a b"}}`, []string{`drain.podSelector: "a b" is no label selector`}},
		"no JSON":                                    {"gpu", `{"drain":`, []string{`this is no JSON: unexpected EOF`}},
		"YAML is not JSON":                           {"gpu", `priority: 1`, []string{`this is no JSON`}},
		"a list":                                     {"gpu", `[1]`, []string{`must be a JSON object`}},
		"null":                                       {"gpu", `null`, []string{`must be a JSON object`}},
		"two objects":                                {"gpu", `{} {}`, []string{`something follows the value`}},
		"a key that appears twice":                   {"gpu", `{"priority":1,"priority":2}`, []string{`"priority" appears twice`}},
		"too much":                                   {"gpu", `{"reason":"` + strings.Repeat("x", 20000) + `"}`, []string{`at most 16384 are allowed`}},
		"a name of one letter":                       {"g", ``, []string{`"g" is no name of a requestor`}},
		"a name in capitals":                         {"GPU", ``, []string{`"GPU" is no name of a requestor`}},
		"a name that is too long":                    {strings.Repeat("a", 64), ``, []string{`is no name of a requestor`}},
		"all at once":                                {"g", `{"prio":1,"shared":1,"drain":{"onTimeout":"x"}}`, []string{"is no name", "prio: unknown field", "shared: must be", "drain.onTimeout: must be"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := nodes.Parse(c.requestor, c.value)
			if err == nil {
				t.Fatal("is taken")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(c.want) {
				t.Errorf("%d faults, want %d:\n%s", len(lines), len(c.want), err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

func TestSelectors(t *testing.T) {
	for text, ok := range map[string]bool{
		"app=web": true, "app==web,tier!=db": true, "app": true, "!app": true, "app in (a,b),x notin (c)": true, "example.com/app=x": true,
		"n>1": true, "app=": true, " app = web ": true, "a in ()": true,
		"app=web web": false, "=a": false, "app in a": false, "-a=b": false, "a=b,,": false, "a=b,": false, "n>x": false, "A/b=c": false, "(": false,
		"a=" + strings.Repeat("x", 64): false,
	} {
		_, err := nodes.Parse("gpu", `{"waitFor":{"podSelector":"`+text+`"}}`)
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWhatStandsOnANodeIsReadWhateverItIs(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pending := nodes.Status{Phase: nodes.Pending, Since: at, Asked: at}
	asked, cordon := nodes.Read(
		map[string]string{"good": "{}", "bad": "{", "new": "", "lost": ""},
		map[string]string{"good": pending.String(), "old": pending.String(), "lost": "{nonsense", "odd": `{"phase":"Dancing"}`},
		"{nonsense",
	)
	var got []string
	for _, a := range asked {
		text := a.Request.Requestor
		if a.Fault != "" {
			text += " faulty"
		}
		if a.Gone {
			text += " gone"
		}
		if a.Status != nil {
			text += " " + a.Status.String()
		}
		got = append(got, text)
	}
	want := []string{"bad faulty", "good " + pending.String(), "lost", "new", "odd gone", "old gone " + pending.String()}
	if diff := cmp.Diff(want, got); diff != "" || cordon != nil {
		t.Errorf("cordon %v, -want +got:\n%s", cordon, diff)
	}
}

func FuzzARequestIsReadOrRefused(f *testing.F) {
	for _, v := range values {
		f.Add("gpu", v)
	}
	f.Fuzz(func(t *testing.T, requestor, value string) {
		r, err := nodes.Parse(requestor, value)
		if err == nil && (r.Drain != nil && (r.Drain.Timeout == nil || r.Drain.OnTimeout == "") || r.Requestor != requestor) {
			t.Errorf("%+v", r)
		}
		if err != nil && strings.TrimSpace(err.Error()) == "" {
			t.Error("refused without a word")
		}
	})
}

func TestTheNameOfARequestorHas2To63Characters(t *testing.T) {
	for n, want := range map[int]bool{1: false, 2: true, 63: true, 64: false} {
		if _, err := nodes.Parse(strings.Repeat("a", n), ""); (err == nil) != want {
			t.Errorf("%d characters: %v", n, err)
		}
	}
}

func TestARequestIsBoundedToTheByte(t *testing.T) {
	for _, bytes := range []int{nodes.MaxRequestBytes - 1, nodes.MaxRequestBytes, nodes.MaxRequestBytes + 1} {
		value := `{"reason":"x"}`
		_, err := nodes.Parse("gpu", value+strings.Repeat(" ", bytes-len(value)))
		if taken := err == nil; taken != (bytes <= nodes.MaxRequestBytes) {
			t.Errorf("%d bytes: %v", bytes, err)
		}
	}
}
