package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// noVersion stands in plugins/krew.yaml where a release has its version.
const noVersion = "v0.0.0"

// krewManifest writes a release's manifest for krew: the template with its version, and the
// checksum of each archive in dist.
func krewManifest(template, version, dist string) (string, error) {
	var out []string
	archive := ""
	for _, line := range strings.Split(strings.ReplaceAll(template, noVersion, version), "\n") {
		if strings.HasPrefix(line, "#") {
			continue // they speak of the template
		}
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "uri":
			archive = path.Base(value)
		case "sha256":
			sum, err := checksum(filepath.Join(dist, archive))
			if err != nil {
				return "", fmt.Errorf("the checksum of %s: %w", archive, err)
			}
			line = line[:strings.Index(line, name)] + "sha256: " + sum
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n"), nil
}

// writeKrew writes dist/maint.yaml and checks it, and what it installs.
func writeKrew(templatePath, version, dist string) error {
	template, err := os.ReadFile(templatePath)
	if err != nil {
		return err
	}
	text, err := krewManifest(string(template), version, dist)
	if err != nil {
		return err
	}
	file := filepath.Join(dist, "maint.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	return checkKrew(file, dist)
}

// checkKrew checks a manifest by krew's rules, and the archives in dist that it names, if
// a dist is given.
func checkKrew(file, dist string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	plugin, faults := readPlugin(text)
	if len(faults) == 0 {
		faults = plugin.faults(filepath.Base(file))
	}
	if len(faults) == 0 && dist != "" {
		faults = plugin.archiveFaults(dist)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%s breaks krew's rules:\n  %s", file, strings.Join(faults, "\n  "))
	}
	return nil
}
