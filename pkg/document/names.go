package document

import (
	"regexp"
	"strings"
)

// StringMap is v as a map of strings, if it is one.
func StringMap(v any) (map[string]string, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	out := make(map[string]string, len(m))
	for key, value := range m {
		if out[key], ok = value.(string); !ok {
			return nil, false
		}
	}
	return out, true
}

// StringList is v as a list of strings, if it is one.
func StringList(v any) ([]string, bool) {
	l, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, len(l))
	for i, item := range l {
		if out[i], ok = item.(string); !ok {
			return nil, false
		}
	}
	return out, true
}

// DNSSubdomain says whether s can name an object.
func DNSSubdomain(s string) bool {
	return len(s) <= 253 && regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`).MatchString(s)
}

// OurPrefix says whether keys with a prefix mean something to kubectl maint.
func OurPrefix(prefix string) bool {
	return prefix == "maint.dev" || strings.HasSuffix(prefix, ".maint.dev")
}

// DNSLabel says whether s can name a document, a step or a namespace.
func DNSLabel(s string) bool {
	return len(s) <= MaxNameLength && regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`).MatchString(s)
}
