package document

import "testing"

func TestTheNameOfAnObjectIsOnePartOfAPath(t *testing.T) {
	for name, want := range map[string]bool{
		"": false, ".": false, "..": false, "a/b": false, "/": false, "a%2fb": false, "%": false,
		"a": true, "...": true, ".a": true, "a.": true, "system:node:a": true, "A b": true,
	} {
		if got := ObjectName(name); got != want {
			t.Errorf("%q can name an object: %v", name, got)
		}
	}
}

// nested is a value within so many lists or objects.
func nested(levels int, wrap func(any) any) any {
	v := any("x")
	for range levels {
		v = wrap(v)
	}
	return v
}

func TestAValueIsTooDeepFromSoManyLevelsOn(t *testing.T) {
	for name, wrap := range map[string]func(any) any{
		"lists":            func(v any) any { return []any{v} },
		"objects":          func(v any) any { return map[string]any{"a": v} },
		"the last of some": func(v any) any { return []any{"a", map[string]any{}, v} },
	} {
		if TooDeep(nested(maxDepth-1, wrap)) || !TooDeep(nested(maxDepth, wrap)) {
			t.Errorf("%s: %v within %d, %v within %d", name, TooDeep(nested(maxDepth-1, wrap)), maxDepth-1, TooDeep(nested(maxDepth, wrap)), maxDepth)
		}
	}
}

func TestHowAnAPIVersionIsSpelt(t *testing.T) {
	for _, s := range []string{"v1", "v1beta1", "apps/v1", "kustomize.toolkit.fluxcd.io/v1beta2"} {
		if !GroupVersion(s) {
			t.Errorf("%q is none", s)
		}
	}
	for _, s := range []string{"", "/", "/v1", "apps/", "a/b/c", "__internal", "apps/__internal", "V1", "v1 ", " v1", "v1/", "Apps/v1", "apps/V1", "./v1", "../v1", "apps/.."} {
		if GroupVersion(s) {
			t.Errorf("%q is one", s)
		}
	}
}

func TestHowAKindIsSpelt(t *testing.T) {
	for _, c := range []struct{ apiVersion, kind, field, why string }{
		{"v1", "Secret", "", ""},
		{"apps/v1", "Deployment", "", ""},
		{"example.org/v1", "lower", "", ""}, // a CRD may have such a kind
		{"example.org/v1", "secret", "", ""},
		{"v1", "Unheard", "", ""},
		{"v1", "secret", "kind", `"secret" is no kind of v1; did you mean "Secret"?`},
		{"v1", "SECRET", "kind", `"SECRET" is no kind of v1; did you mean "Secret"?`},
		{"v1", "secrets", "kind", `"secrets" is no kind of v1; did you mean "Secret"?`},
		{"v1", "Secrets", "kind", `"Secrets" is no kind of v1; did you mean "Secret"?`},
		{"apps/v1", "deployment", "kind", `"deployment" is no kind of apps/v1; did you mean "Deployment"?`},
		{"batch/v1", "cronjobs", "kind", `"cronjobs" is no kind of batch/v1; did you mean "CronJob"?`},
		{"apps/", "Deployment", "apiVersion", `"apps/" is no apiVersion; write it like apps/v1 or v1`},
		{"Apps/v1", "Deployment", "apiVersion", `"Apps/v1" is no apiVersion; write it like apps/v1 or v1`},
	} {
		if field, why := Misspelt(c.apiVersion, c.kind); field != c.field || why != c.why {
			t.Errorf("%s of %s: %q, %q", c.kind, c.apiVersion, field, why)
		}
	}
}
