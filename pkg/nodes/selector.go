package nodes

import (
	"regexp"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// checkSelector reports where a text is no label selector as kubectl's -l takes
// it: requirements with commas between, each of them key, !key, key=value,
// key==value, key!=value, key in (a,b), key notin (a,b), key>1 or key<1.
func checkSelector(path, text string, at func(path, format string, args ...any)) {
	if strings.TrimSpace(text) == "" {
		return
	}
	for _, requirement := range requirements(text) {
		if !requirementOK(strings.TrimSpace(requirement)) {
			at(path, "%q is no requirement of a label selector: write app=web, tier in (a,b), !canary", plan.Cut(strings.TrimSpace(requirement), 100))
		}
	}
}

// requirements splits at commas outside of parentheses.
func requirements(text string) []string {
	var out []string
	depth, from := 0, 0
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out, from = append(out, text[from:i]), i+1
			}
		}
	}
	return append(out, text[from:])
}

func requirementOK(r string) bool {
	if key, ok := strings.CutPrefix(r, "!"); ok {
		return labelKey(strings.TrimSpace(key))
	}
	if m := regexp.MustCompile(`^(\S+)\s+(?:in|notin)\s*\(([^()]*)\)$`).FindStringSubmatch(r); m != nil {
		return labelKey(m[1]) && labelValues(m[2])
	}
	m := regexp.MustCompile(`^([^=!<>\s]+)\s*(?:(==|=|!=|<|>)\s*(\S*))?$`).FindStringSubmatch(r)
	if m == nil || !labelKey(m[1]) {
		return false
	}
	switch m[2] {
	case "<", ">":
		return regexp.MustCompile(`^-?[0-9]{1,18}$`).MatchString(m[3])
	case "":
		return true
	}
	return labelValue(m[3])
}

func labelKey(key string) bool {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		prefix, name = "", key
	}
	if prefixed && (len(prefix) > 253 || !regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`).MatchString(prefix)) {
		return false
	}
	return name != "" && labelValue(name)
}

func labelValues(list string) bool {
	for value := range strings.SplitSeq(list, ",") {
		if !labelValue(strings.TrimSpace(value)) {
			return false
		}
	}
	return true
}

func labelValue(value string) bool {
	return len(value) <= 63 && regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`).MatchString(value)
}
