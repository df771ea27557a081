package watchrule

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// digester works out what a rule compares of an object.
type digester struct {
	planUID      string
	mirrorPrefix string
	paths        [][]expr.PathStep // none: the object as a whole
	status       bool              // a path leads into status
}

func newDigester(w plan.Watch, planUID, mirrorPrefix string) digester {
	d := digester{planUID: planUID, mirrorPrefix: cmp.Or(mirrorPrefix, plan.DefaultMirrorPrefix)}
	for _, field := range w.Fields {
		steps, err := expr.ParsePath(field)
		if err != nil || slices.ContainsFunc(d.paths, func(p []expr.PathStep) bool { return slices.Equal(p, steps) }) {
			continue // a valid plan has none of the former; one path may have several spellings
		}
		d.paths = append(d.paths, steps)
		d.status = d.status || steps[0].Name == "status" || steps[0].All
	}
	return d
}

// of is a keyed hash: two objects of equal content have different ones, and the
// same object has another one in another plan.
func (d digester) of(uid string, body map[string]any) string {
	mac := hmac.New(sha256.New, []byte(d.planUID+"/"+uid))
	if len(d.paths) == 0 {
		mac.Write(asText(d.essence(body)))
	} else { // the text of a list of what they lead to, of which one at a time is in memory
		sign := "["
		for _, steps := range d.paths {
			mac.Write([]byte(sign))
			mac.Write(asText(expr.Pick(body, steps)))
			sign = ","
		}
		mac.Write([]byte("]"))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:10])
}

// asText is JSON with its keys sorted: equal content is equal text.
func asText(value any) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("digest of an object: %v", err)) // it came as JSON
	}
	return b
}

// essence is an object without what changes by itself, and without our own keys.
func (d digester) essence(body map[string]any) map[string]any {
	out := maps.Clone(body)
	delete(out, "status")
	meta, ok := body["metadata"].(map[string]any)
	if !ok {
		return out
	}
	meta = maps.Clone(meta)
	for _, key := range []string{"managedFields", "resourceVersion", "generation", "selfLink"} {
		delete(meta, key)
	}
	for _, key := range []string{"labels", "annotations"} {
		d.withoutOurs(meta, key)
	}
	out["metadata"] = meta
	return out
}

// withoutOurs drops our keys from a map within a map; an empty one is none.
func (d digester) withoutOurs(meta map[string]any, field string) {
	all, ok := meta[field].(map[string]any)
	if !ok {
		return
	}
	theirs := make(map[string]any, len(all))
	for key, value := range all {
		if !d.ours(key) {
			theirs[key] = value
		}
	}
	meta[field] = theirs
	if len(theirs) == 0 {
		delete(meta, field)
	}
}

// ours knows the keys that the agent writes on the objects of others, and those
// by which people talk to it there.
func (d digester) ours(key string) bool {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		return false
	}
	if prefix == "maint.dev" || strings.HasSuffix(prefix, ".maint.dev") {
		return true
	}
	return prefix == d.mirrorPrefix && slices.ContainsFunc([]string{"-status", "-last-run", "-next-run", "-step", "-skip"}, func(suffix string) bool {
		return strings.HasSuffix(name, suffix)
	})
}
