package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func platforms() []v1.Platform {
	return []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
}

// binary is the agent for one platform.
type binary struct {
	platform v1.Platform
	text     []byte
}

// tags are the Makefile's: without them the agent is 13 MB larger.
const tags = "grpcnotrace"

// build compiles the agent. Nothing of this machine ends up in it: no paths, no
// C library, no revision of a dirty tree.
func build(ctx context.Context, root, path string, p v1.Platform, version string) (binary, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return binary{}, err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", tags, "-ldflags", "-s -w -X main.version="+version, "-o", path, "./cmd/agent")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Architecture)
	if out, err := cmd.CombinedOutput(); err != nil {
		return binary{}, fmt.Errorf("build the agent for %s: %w\n%s", p, err, out)
	}
	text, err := os.ReadFile(path)
	return binary{platform: p, text: text}, err
}

// certificates are Mozilla's authorities, as golang.org/x/crypto has them: an
// image from nothing knows none, and webhooks to https could not be verified.
// Those that are trusted only in part stay out: a file cannot say in which part.
func certificates() ([]byte, error) {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if _, err := x509.ParseCertificate(root.Certificate); err != nil {
			return nil, fmt.Errorf("read a certificate authority: %w", err)
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}
