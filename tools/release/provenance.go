package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
)

// statement is one of in-toto (https://in-toto.io/Statement/v1) with SLSA's provenance
// (https://slsa.dev/provenance/v1). It is not signed: the release workflow signs it.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string         `json:"buildType"`
		ExternalParameters   map[string]any `json:"externalParameters"`
		InternalParameters   map[string]any `json:"internalParameters"`
		ResolvedDependencies []dependency   `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

type dependency struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest,omitempty"`
}

const repository = "https://github.com/kubectl-maint/kubectl-maint"

// provenance says from what, how and by whom each file of the release was made. It has no
// time: the same commit gives the same statement.
func (d dist) provenance(from source) error {
	const file = "provenance.intoto.json"
	names, err := d.files()
	if err != nil {
		return err
	}
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, name := range names {
		if name == file {
			continue
		}
		sum, err := checksum(filepath.Join(d.out, name))
		if err != nil {
			return err
		}
		s.Subject = append(s.Subject, subject{name, map[string]string{"sha256": sum}})
	}
	b := &s.Predicate.BuildDefinition
	b.BuildType = repository + "/blob/main/docs/releasing.md"
	b.ExternalParameters = map[string]any{"version": d.version, "source": repository, "target": "make dist"}
	b.InternalParameters = map[string]any{"go": runtime.Version(), "uncommittedChanges": from.dirty}
	b.ResolvedDependencies = []dependency{{"git+" + repository, map[string]string{"gitCommit": from.commit}}, {"pkg:golang/toolchain@" + runtime.Version(), nil}}
	s.Predicate.RunDetails.Builder.ID = d.builder
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.out, file), append(text, '\n'), 0o644)
}
