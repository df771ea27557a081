package image

import "testing"

func TestTheImageOfAnUpgrade(t *testing.T) {
	for _, c := range []struct {
		name, live, was string
		want            string
		told            bool
	}{
		{"the default becomes the new version's", "kubectl-maint/agent:v0.1.0", "v0.1.0", "kubectl-maint/agent:v0.2.0", false},
		{"a registry of one's own stays, and gets the new tag", "registry.example.org/mirror/agent:v0.1.0", "v0.1.0", "registry.example.org/mirror/agent:v0.2.0", false},
		{"a port is no tag", "registry:5000/agent:v0.1.0", "v0.1.0", "registry:5000/agent:v0.2.0", false},
		{"a registry with a port and no tag stays as it is", "registry:5000/agent", "v0.1.0", "registry:5000/agent", true},
		{"a tag of one's own stays", "example.org/agent:stable", "v0.1.0", "example.org/agent:stable", true},
		{"another version than install wrote was chosen by somebody", "example.org/agent:v0.1.1", "v0.1.0", "example.org/agent:v0.1.1", true},
		{"a digest stays", "example.org/agent@sha256:0123", "v0.1.0", "example.org/agent@sha256:0123", true},
		{"a digest beside a tag stays", "example.org/agent:v0.1.0@sha256:0123", "v0.1.0", "example.org/agent:v0.1.0@sha256:0123", true},
		{"the new tag is there already", "example.org/agent:v0.2.0", "v0.1.0", "example.org/agent:v0.2.0", false},
		{"without the label a version's tag is taken for one that install wrote", "example.org/agent:v0.1.0", "", "example.org/agent:v0.2.0", false},
		{"without the label another tag is not", "example.org/agent:stable", "", "example.org/agent:stable", true},
		{"without an image the default is taken", "", "v0.1.0", "kubectl-maint/agent:v0.2.0", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, why := Next(c.live, c.was, "kubectl-maint/agent:v0.2.0")
			if got != c.want || (why != "") != c.told {
				t.Errorf("it becomes %s (%q); want %s, told %v", got, why, c.want, c.told)
			}
		})
	}
}

func TestAnImageOfAnotherVersionIsTold(t *testing.T) {
	for image, want := range map[string]string{
		"r:5000/agent":                 "has no tag, which means :latest: name the tag of this version, :v0.2.0",
		"r:5000/agent:v0.1.0":          "has another tag than this version (v0.2.0): an upgrade needs the image of the new version",
		"r:5000/agent:v0.2.0":          "",
		"r:5000/agent:ours":            "",
		"r:5000/agent@sha256:abc":      "",
		"r:5000/agent:v0.1.0@sha256:a": "",
	} {
		if got := Doubt(image, "v0.2.0"); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}
