package setup

import "fmt"

// Template is one of the texts that install renders.
type Template struct{ Name, Text string }

// Templates are agent, config and the admission policies, in the order of their application, for
// those who build other packages from the same text.
func Templates() ([]Template, error) {
	var out []Template
	for _, name := range []string{"agent", "config"} {
		text, err := manifestFiles.ReadFile("manifests/" + name + ".yaml")
		if err != nil {
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		out = append(out, Template{name, string(text)})
	}
	for _, name := range policyOrder() {
		text, err := policyFiles.ReadFile("manifests/admission/" + name + ".yaml")
		if err != nil {
			return nil, fmt.Errorf("read the policies: %w", err)
		}
		out = append(out, Template{name, string(text)})
	}
	return out, nil
}
