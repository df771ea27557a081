package annotations

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v2"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// runText is a run as YAML, with the names of its JSON. It is what sigs.k8s.io/yaml
// makes, which reads the JSON with a parser of YAML: that alone was a fifth of all
// memory that a run's beginning allocates.
func runText(r run.Run) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(text, []byte(`"\u003c\u003c":`)) { // "<<": YAML would be written without the quotes, and read as a merge
		return text, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	if tree, err = withNumbers(tree); err != nil {
		return nil, err
	}
	return yaml.Marshal(tree)
}

// withNumbers replaces each json.Number in a decoded value, in place: whole numbers
// keep all their digits.
func withNumbers(value any) (any, error) {
	var err error
	switch v := value.(type) {
	case map[string]any:
		for key, one := range v {
			if v[key], err = withNumbers(one); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, one := range v {
			if v[i], err = withNumbers(one); err != nil {
				return nil, err
			}
		}
	case json.Number:
		return number(v.String())
	}
	return value, nil
}

func number(digits string) (any, error) {
	if whole, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return whole, nil
	}
	if whole, err := strconv.ParseUint(digits, 10, 64); err == nil {
		return whole, nil
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return nil, fmt.Errorf("read the number %s: %w", digits, err)
	}
	return f, nil
}
