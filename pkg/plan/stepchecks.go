package plan

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

func checkLabel(p any, at document.Reporter) {
	props := p.(*LabelProperties)
	checkKeys(props.Operation, props.Labels, "labels", at)
	checkOptionalRef(props.Object, at)
}

func checkAnnotate(p any, at document.Reporter) {
	props := p.(*AnnotateProperties)
	checkKeys(props.Operation, props.Annotations, "annotations", at)
	checkOptionalRef(props.Object, at)
}

func checkHoldOwners(p any, at document.Reporter) {
	props := p.(*HoldOwnersProperties)
	checkOptionalRef(props.Object, at)
	if !props.RestoreAfter {
		at("restoreAfter", "must be true: what is suspended is given back when the run ends")
	}
}

func checkOptionalRef(ref *ResourceRef, at document.Reporter) {
	if ref != nil {
		checkRef("object", *ref, at)
	}
}

func checkKeys(operation string, keys any, field string, at document.Reporter) {
	switch operation {
	case "add":
		added, ok := document.StringMap(keys)
		if !ok || len(added) == 0 {
			at(field, "must be a map of %s to add, like {team: payments}", field)
		}
		for _, key := range slices.Sorted(maps.Keys(added)) {
			checkKey(field, key, at)
			if field == "labels" && !expr.IsTemplate(added[key]) && !labelValue().MatchString(added[key]) {
				at(field+"."+key, "%q is no label value: at most 63 letters, digits, '-', '_' and '.'", added[key])
			}
		}
	case "remove":
		removed, ok := document.StringList(keys)
		if !ok || len(removed) == 0 {
			at(field, "must be a list of keys to remove, like [maintenance]")
		}
		for _, key := range removed {
			if !expr.IsTemplate(key) {
				checkKey(field, key, at)
			}
		}
	default:
		at("operation", "must be add or remove, is %q", operation)
	}
}

func checkRef(path string, ref ResourceRef, at document.Reporter) {
	for _, f := range []struct{ field, value, example string }{
		{"apiVersion", ref.APIVersion, "apps/v1"}, {"kind", ref.Kind, "Deployment"}, {"name", ref.Name, "orders"},
	} {
		if f.value == "" {
			at(path+"."+f.field, "is missing; write it like %s", f.example)
		}
	}
	if fault := document.NotNaming(ref.Name, "an object"); fault != "" && ref.Name != "" && !expr.IsTemplate(ref.Name) {
		at(path+".name", "%s", fault)
	}
	if ref.Namespace != "" && !expr.IsTemplate(ref.Namespace) && !document.DNSLabel(ref.Namespace) {
		at(path+".namespace", "%q is no namespace", document.Cut(ref.Namespace, 100))
	}
}

func checkPatch(p any, at document.Reporter) {
	props := p.(*PatchProperties)
	checkRef("resource", props.Resource, at)
	kinds := []string{"", "strategic", "merge", "json"}
	if !slices.Contains(kinds, props.PatchType) {
		at("patchType", "must be strategic, merge or json, is %q", props.PatchType)
		return
	}
	switch props.Patch.(type) {
	case map[string]any:
		if props.PatchType == "json" {
			at("patch", "must be a list of operations, like [{op: replace, path: /spec/paused, value: true}]")
		}
	case []any:
		if props.PatchType != "json" {
			at("patch", "must be an object; a list of operations needs patchType: json")
		}
	case nil:
		at("patch", "is missing")
	default:
		at("patch", "must be an object or, with patchType: json, a list of operations")
	}
}

func checkScale(p any, at document.Reporter) {
	props := p.(*ScaleProperties)
	checkRef("resource", props.Resource, at)
	if props.Replicas != nil && (*props.Replicas < 0 || *props.Replicas > 1_000_000) {
		at("replicas", "must be from 0 to 1000000, is %d", *props.Replicas)
	}
}

func checkSuspend(p any, at document.Reporter) {
	props := p.(*SuspendProperties)
	if props.Duration != nil && props.Duration.Duration <= 0 {
		at("duration", "must be longer than 0s; without a duration the run waits for kubectl maint resume")
	}
	if props.Duration != nil && props.Duration.Duration > document.Longest {
		at("duration", "must be at most %dd, is %s", document.Longest/(24*time.Hour), props.Duration)
	}
}

func checkWait(p any, at document.Reporter) {
	props := p.(*WaitProperties)
	if props.Resource != (ResourceRef{}) { // where it may not be left out, it is required
		checkRef("resource", props.Resource, at)
	}
	if (props.Condition == "") == (props.Until == "") {
		at("", "needs exactly one of condition and until")
	}
	if props.Until != "" {
		if err := expr.CheckBool(props.Until, "object"); err != nil {
			at("until", "%s", err)
		}
	}
}

func checkWebhook(p any, at document.Reporter) {
	props := p.(*WebhookProperties)
	checkURL(props.URL, at)
	methods := []string{"", "GET", "POST", "PUT", "PATCH", "DELETE"}
	if !slices.Contains(methods, props.Method) {
		at("method", "must be GET, POST, PUT, PATCH or DELETE, is %q", props.Method)
	}
	checkHeaders(props.Headers, at)
	if props.Timeout != nil && (props.Timeout.Seconds() < 1 || props.Timeout.Minutes() > 10) {
		at("timeout", "must be from 1s to 10m, is %s", props.Timeout)
	}
	if props.Expect != nil {
		for i, status := range props.Expect.Status {
			if status < 100 || status > 599 {
				at(fmt.Sprintf("expect.status[%d]", i), "must be an HTTP status from 100 to 599, is %d", status)
			}
		}
	}
}

func checkHeaders(headers map[string]HeaderValue, at document.Reporter) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		h := headers[name]
		if !headerName().MatchString(name) {
			at("headers."+name, "%q cannot name a header", document.Cut(name, 100))
		}
		if (h.Value != "") == (h.SecretKeyRef != nil) {
			at("headers."+name, "needs a value or a secretKeyRef, and not both")
		}
		if r := h.SecretKeyRef; r != nil && (r.Name == "" || r.Key == "") {
			at("headers."+name, "needs the secretKeyRef's name and key")
		}
		if strings.ContainsFunc(h.Value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			at("headers."+name, "must be one line")
		}
		if reserved := []string{"idempotency-key", "maint-attempt", "host", "content-length"}; slices.Contains(reserved, strings.ToLower(name)) {
			at("headers."+name, "is set by the agent; choose another name")
		}
	}
}

func checkURL(raw string, at document.Reporter) {
	if raw == "" {
		at("url", "is missing; write it like https://example.org/hook")
		return
	}
	if expr.IsTemplate(raw) {
		return
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		at("url", "%q is no http or https URL", PublicURL(raw))
		return
	}
	if u.User != nil {
		at("url", "must not hold a password; use headers with a secretKeyRef")
	}
}

// PublicURL is what of a URL may stand in a message, whether it is one or not: neither who
// asks nor a query, in which a template may have put a token.
func PublicURL(raw string) string {
	scheme, rest, found := strings.Cut(raw, "://")
	if !found {
		scheme, rest = "", raw
	}
	if i := strings.LastIndex(rest, "@"); i >= 0 { // a password may hold what ends a host elsewhere
		rest = "***" + rest[i:]
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	if found {
		rest = scheme + "://" + rest
	}
	return document.Cut(rest, 200)
}

func checkJob(p any, at document.Reporter) {
	props := p.(*JobProperties)
	if (props.Template == nil) == (props.Image == "") {
		at("", "needs exactly one of template (a Job's spec) and image")
	}
	if props.Template == nil {
		return
	}
	if len(props.Command)+len(props.Args) > 0 {
		at("command", "stands in the template's containers when a template is given")
	}
	if path := document.HugeQuantity(props.Template); path != "" {
		at("template."+path, "is no quantity that can be read: it is too long, or its exponent is")
	}
	pod, ok := props.Template["template"].(map[string]any)
	if !ok {
		at("template.template", "is missing; a Job's spec holds a pod template here")
		return
	}
	if spec, ok := pod["spec"].(map[string]any); !ok || spec["containers"] == nil {
		at("template.template.spec.containers", "is missing; a Job needs a container")
	}
}

func checkKey(field, key string, at document.Reporter) {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		prefix, name = "", key
	}
	if strings.Contains(name, "/") || !labelName().MatchString(name) || prefixed && !document.DNSSubdomain(prefix) {
		at(field, "%q is no key: write name or prefix.example.org/name, the name at most 63 letters, digits, '-', '_' and '.'", document.Cut(key, 200))
		return
	}
	if document.OurPrefix(prefix) {
		at(field, "%q belongs to kubectl maint: choose a prefix of your own", key)
	}
}

func headerName() *regexp.Regexp {
	return regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")
}

func labelName() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
}

func labelValue() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`)
}
