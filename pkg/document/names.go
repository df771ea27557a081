package document

import (
	"fmt"
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
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return true
}

// OurPrefix says whether keys with a prefix mean something to kubectl maint.
func OurPrefix(prefix string) bool {
	return prefix == "maint.dev" || strings.HasSuffix(prefix, ".maint.dev")
}

// DNSLabel says whether s can name a document, a step or a namespace.
func DNSLabel(s string) bool {
	return len(s) <= MaxNameLength && isLabel(s)
}

// ObjectName says whether s can name an object of any kind: it is one part of the path of a URL, as the
// API server asks of every name (ValidatePathSegmentName of apimachinery).
func ObjectName(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/%")
}

// NotNaming says why s cannot name what is meant, such as "an object"; empty: it can.
func NotNaming(s, meant string) string {
	if ObjectName(s) {
		return ""
	}
	return fmt.Sprintf("%q cannot name %s: no name is . or .., or has / or %% in it", Cut(s, 100), meant)
}

// GroupVersion says whether s is spelt as the apiVersion of an object is: v1, or group/version.
func GroupVersion(s string) bool {
	group, version, grouped := strings.Cut(s, "/")
	if !grouped {
		return DNSLabel(s)
	}
	return DNSSubdomain(group) && DNSLabel(version)
}

// Misspelt says what is wrong with the apiVersion and the kind of an object, and of which of the two;
// empty: nothing is known to be. The API server has one spelling of a kind, and nothing else finds it.
func Misspelt(apiVersion, kind string) (field, why string) {
	if !GroupVersion(apiVersion) {
		return "apiVersion", fmt.Sprintf("%q is no apiVersion; write it like apps/v1 or v1", Cut(apiVersion, 100))
	}
	for _, known := range strings.Fields(builtIn(apiVersion)) {
		if kind != known && (strings.EqualFold(kind, known) || strings.EqualFold(kind, known+"s")) {
			return "kind", fmt.Sprintf("%q is no kind of %s; did you mean %q?", Cut(kind, 100), apiVersion, known)
		}
	}
	return "", ""
}

// builtIn are kinds of Kubernetes itself that plans are about: no other object has their apiVersion.
func builtIn(apiVersion string) string {
	switch apiVersion {
	case "v1":
		return "Secret ConfigMap Pod Node Service Namespace ServiceAccount PersistentVolumeClaim PersistentVolume Event ReplicationController ResourceQuota LimitRange"
	case "apps/v1":
		return "Deployment StatefulSet DaemonSet ReplicaSet"
	case "batch/v1":
		return "Job CronJob"
	}
	return ""
}

// isLabel says whether s is made of a to z, 0 to 9 and, between them, dashes. Every name in every
// document is tested, which a regular expression would make the longest part of reading it.
func isLabel(s string) bool {
	for i := range len(s) {
		dash := s[i] == '-' && i > 0 && i < len(s)-1
		if !dash && (s[i] < 'a' || s[i] > 'z') && (s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return s != ""
}
