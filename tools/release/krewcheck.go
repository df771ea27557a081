package main

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// plugin is a manifest as krew reads it.
type plugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string         `json:"version"`
		ShortDescription string         `json:"shortDescription"`
		Description      string         `json:"description"`
		Caveats          string         `json:"caveats"`
		Homepage         string         `json:"homepage"`
		Platforms        []krewPlatform `json:"platforms"`
	} `json:"spec"`
}

type krewPlatform struct {
	URI      string     `json:"uri"`
	Sha256   string     `json:"sha256"`
	Selector *selector  `json:"selector"`
	Files    []krewFile `json:"files"`
	Bin      string     `json:"bin"`
}

// selector is a label selector of Kubernetes.
type selector struct {
	MatchLabels      map[string]string `json:"matchLabels"`
	MatchExpressions []expression      `json:"matchExpressions"`
}

type expression struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

type krewFile struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// readPlugin reads a manifest. Fields that krew does not know are faults.
func readPlugin(text []byte) (plugin, []string) {
	var p plugin
	if err := yaml.UnmarshalStrict(text, &p); err != nil {
		return p, []string{err.Error()}
	}
	return p, nil
}

// faults are the rules that a manifest breaks, but for what its archives hold.
func (p plugin) faults(file string) []string {
	var out []string
	rule := func(holds bool, format string, args ...any) {
		if !holds {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	rule(p.APIVersion == "krew.googlecontainertools.github.com/v1alpha2", "apiVersion is %q", p.APIVersion)
	rule(p.Kind == "Plugin", "kind is %q, not Plugin", p.Kind)
	name := p.Metadata.Name
	rule(regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(name), "metadata.name %q is not lower-case words with dashes", name)
	rule(!strings.HasPrefix(name, "kubectl-"), "metadata.name %q has the prefix that krew adds", name)
	rule(file == name+".yaml", "the file is %s, and the plugin is %q", file, name)
	rule(regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`).MatchString(p.Spec.Version), "version %q is not vX.Y.Z", p.Spec.Version)
	rule(p.Spec.ShortDescription != "" && !strings.ContainsAny(p.Spec.ShortDescription, "\r\n"), "shortDescription is not one line")
	rule(p.Spec.Description != "", "there is no description")
	rule(strings.HasPrefix(p.Spec.Homepage, "https://"), "homepage %q is no https address", p.Spec.Homepage)
	rule(len(p.Spec.Platforms) > 0, "there are no platforms")
	for i, platform := range p.Spec.Platforms {
		for _, fault := range platform.faults() {
			out = append(out, fmt.Sprintf("platforms[%d]: %s", i, fault))
		}
	}
	return append(out, p.overlaps()...)
}

func (p krewPlatform) faults() []string {
	var out []string
	rule := func(holds bool, format string, args ...any) {
		if !holds {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	address, err := url.Parse(p.URI)
	rule(err == nil && address.Scheme == "https" && address.Host != "", "uri %q is no https address", p.URI)
	rule(strings.HasSuffix(p.URI, ".tar.gz") || strings.HasSuffix(p.URI, ".zip"), "uri %q is neither .tar.gz nor .zip", p.URI)
	rule(regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(p.Sha256), "sha256 %q is not 64 digits of lower-case hex", p.Sha256)
	rule(p.Bin != "" && inside(p.Bin), "bin %q is no file of the installation", p.Bin)
	systems := p.systems()
	rule(len(systems) > 0, "the selector selects no system")
	for _, s := range systems {
		rule((s.os == "windows") == strings.HasSuffix(p.Bin, ".exe"), "bin %q on %s", p.Bin, s.os)
	}
	if p.Selector != nil {
		for _, key := range p.Selector.keys() {
			rule(key == "os" || key == "arch", "the selector speaks of %q, and may of os and arch", key)
		}
	}
	rule(p.Files == nil || len(p.Files) > 0, "files is empty: leave it out, or name some")
	for _, f := range p.Files {
		rule(f.From != "" && inside(f.From), "files: from %q is not in the archive", f.From)
		rule(f.To != "" && inside(f.To), "files: to %q is not in the installation", f.To)
	}
	if len(p.Files) > 0 {
		rule(p.installs(p.Bin), "bin %q is not among the files", p.Bin)
		rule(p.installs("LICENSE"), "no LICENSE is among the files")
	}
	return out
}

// inside says whether a path stays in its folder.
func inside(name string) bool {
	clean := path.Clean(name)
	return !path.IsAbs(name) && clean != ".." && !strings.HasPrefix(clean, "../") && !strings.Contains(name, `\`)
}

// installs says whether a file is where files put it, as far as their patterns tell.
func (p krewPlatform) installs(name string) bool {
	return slices.ContainsFunc(p.Files, func(f krewFile) bool {
		matched, err := path.Match(path.Base(f.From), path.Base(name))
		return err == nil && matched && path.Join(f.To, path.Base(name)) == path.Clean(name)
	})
}

func (s selector) keys() []string {
	var out []string
	for key := range s.MatchLabels {
		out = append(out, key)
	}
	for _, e := range s.MatchExpressions {
		out = append(out, e.Key)
	}
	slices.Sort(out)
	return out
}

// system is what krew runs on.
type system struct{ os, arch string }

// systems are those of krew's users that a platform is for.
func (p krewPlatform) systems() []system {
	var out []system
	for _, os := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"386", "amd64", "arm", "arm64", "ppc64le", "s390x"} {
			if p.Selector == nil || p.Selector.matches(map[string]string{"os": os, "arch": arch}) {
				out = append(out, system{os, arch})
			}
		}
	}
	return out
}

func (s selector) matches(labels map[string]string) bool {
	for key, value := range s.MatchLabels {
		if labels[key] != value {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		value, there := labels[e.Key]
		switch e.Operator {
		case "In":
			if !slices.Contains(e.Values, value) {
				return false
			}
		case "NotIn":
			if slices.Contains(e.Values, value) {
				return false
			}
		case "Exists":
			if !there {
				return false
			}
		default: // DoesNotExist, and what is no operator
			if there || e.Operator != "DoesNotExist" {
				return false
			}
		}
	}
	return true
}

// overlaps are systems for which there is more than one archive.
func (p plugin) overlaps() []string {
	var out []string
	first := map[system]int{}
	for i, platform := range p.Spec.Platforms {
		for _, s := range platform.systems() {
			if other, taken := first[s]; taken {
				out = append(out, fmt.Sprintf("platforms[%d] and [%d] are both for %s/%s", other, i, s.os, s.arch))
				continue
			}
			first[s] = i
		}
	}
	return out
}

// archiveFaults compares the manifest with the archives that it names.
func (p plugin) archiveFaults(dist string) []string {
	var out []string
	for i, platform := range p.Spec.Platforms {
		if err := platform.compare(filepath.Join(dist, path.Base(platform.URI))); err != nil {
			out = append(out, fmt.Sprintf("platforms[%d]: %v", i, err))
		}
	}
	return out
}

func (p krewPlatform) compare(archive string) error {
	sum, err := checksum(archive)
	if err != nil {
		return err
	}
	if sum != p.Sha256 {
		return fmt.Errorf("sha256 of %s is %s", filepath.Base(archive), sum)
	}
	entries, err := unpacked(archive)
	if err != nil {
		return err
	}
	installed, err := p.installed(entries)
	if err != nil {
		return fmt.Errorf("%s %w", filepath.Base(archive), err)
	}
	bin, there := installed[path.Clean(p.Bin)]
	if !there {
		return fmt.Errorf("%s holds no bin %s", filepath.Base(archive), p.Bin)
	}
	if !bin.executable && !strings.HasSuffix(p.Bin, ".exe") {
		return fmt.Errorf("%s in %s is not executable", p.Bin, filepath.Base(archive))
	}
	if _, there := installed["LICENSE"]; !there {
		return fmt.Errorf("%s installs no LICENSE", filepath.Base(archive))
	}
	return nil
}

// installed are the entries of an archive by where krew puts them: all of them in their
// place where no files are named.
func (p krewPlatform) installed(entries []entry) (map[string]entry, error) {
	out := map[string]entry{}
	if len(p.Files) == 0 {
		for _, e := range entries {
			out[path.Clean(e.name)] = e
		}
		return out, nil
	}
	for _, f := range p.Files {
		found := false
		for _, e := range entries {
			if matched, err := path.Match(f.From, e.name); err == nil && matched {
				found, out[path.Join(f.To, path.Base(e.name))] = true, e
			}
		}
		if !found {
			return nil, fmt.Errorf("holds no %s", f.From)
		}
	}
	return out, nil
}
