package document

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Bounds of a quantity's text: Kubernetes' largest is 2^63-1, and what it takes to read one grows with
// the exponent (k8s.io/apimachinery/pkg/api/resource).
const (
	maxQuantity       = 64 // bytes
	maxExponentDigits = 3
)

// quantityFields are those of Kubernetes' API that are quantities or hold some (core/v1 and batch/v1).
func quantityFields() []string {
	return []string{"allocatable", "allocatedresources", "capacity", "divisor", "limits", "overhead", "requests", "sizelimit"}
}

// namedFreely are fields whose keys people choose.
func namedFreely() []string {
	return []string{"annotations", "labels", "matchLabels", "nodeSelector"}
}

// HugeQuantity is the path of the first quantity in a part of an object, decoded from JSON or YAML, that
// would take long to read; empty: there is none.
func HugeQuantity(part any) string { return hugeQuantity(part, "", false) }

func hugeQuantity(part any, path string, quantity bool) string {
	switch part := part.(type) {
	case string:
		if quantity && isHuge(part) {
			return strings.TrimPrefix(path, ".")
		}
	case []any:
		for i, v := range part {
			if found := hugeQuantity(v, fmt.Sprintf("%s[%d]", path, i), quantity); found != "" {
				return found
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(part)) {
			if slices.Contains(namedFreely(), key) {
				continue
			}
			if found := hugeQuantity(part[key], path+"."+key, quantity || slices.Contains(quantityFields(), strings.ToLower(key))); found != "" {
				return found
			}
		}
	}
	return ""
}

// isHuge says whether a text is too long for a quantity, or has an exponent of more than three digits.
func isHuge(text string) bool {
	if len(text) > maxQuantity {
		return true
	}
	i := strings.LastIndexAny(text, "eE")
	if i < 0 {
		return false
	}
	digits := strings.TrimLeft(text[i+1:], "+-0")
	return len(digits) > maxExponentDigits && strings.Trim(digits, "0123456789") == ""
}
