package main

import (
	"archive/tar"
	"bytes"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is nobody in particular: not root, and a number, so that Kubernetes can
// tell (runAsNonRoot) without a passwd file.
const user = "65532:65532"

// about is what an image says of itself.
type about struct{ version string }

func (a about) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "kubectl-maint agent",
		"org.opencontainers.image.description": "The in-cluster half of kubectl maint: it runs plans as their own ServiceAccounts.",
		"org.opencontainers.image.source":      "https://github.com/kubectl-maint/kubectl-maint",
		"org.opencontainers.image.version":     a.version,
	}
}

// multiPlatform is an index of one image for each binary.
func multiPlatform(a about, roots []byte, binaries []binary) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range binaries {
		image, err := fromScratch(a, roots, b)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &b.platform}})
	}
	return index, nil
}

// fromScratch is an image of the agent and the certificates it needs, and
// nothing else: no shell, no package manager, no other user.
func fromScratch(a about, roots []byte, b binary) (v1.Image, error) {
	text, err := files(roots, b.text)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: epoch(), CreatedBy: "kubectl-maint tools/image"}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = b.platform.OS, b.platform.Architecture, epoch()
	config.Config = v1.Config{
		User: user, Entrypoint: []string{"/agent"}, WorkingDir: "/", Labels: a.labels(),
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
	}
	return mutate.ConfigFile(image, config)
}

// epoch is when everything in the image was made: the same source gives the
// same bytes, whenever it is built.
func epoch() v1.Time { return v1.Time{Time: time.Unix(0, 0).UTC()} }

// files is the image's only layer.
func files(roots, agent []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range []struct {
		name string
		mode int64
		text []byte // nil: a directory
	}{
		{"etc/", 0o755, nil},
		{"etc/ssl/", 0o755, nil},
		{"etc/ssl/certs/", 0o755, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o444, roots},
		{"agent", 0o555, agent},
	} {
		header := &tar.Header{Name: f.name, Mode: f.mode, ModTime: epoch().Time, Typeflag: tar.TypeDir}
		if f.text != nil {
			header.Typeflag, header.Size = tar.TypeReg, int64(len(f.text))
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
