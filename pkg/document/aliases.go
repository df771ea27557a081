package document

import (
	"bytes"
	"slices"

	"go.yaml.in/yaml/v3"
)

// MayHaveAliases says whether a YAML text has aliases, or cannot be read and has an asterisk. A parser
// writes aliases out, so that a small text stands for one without bounds.
func MayHaveAliases(text []byte) bool {
	if !bytes.ContainsRune(text, '*') {
		return false
	}
	root, faults := parseOne(text)
	return len(faults) > 0 || hasAlias(root)
}

func hasAlias(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, hasAlias)
}
