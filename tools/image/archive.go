package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// writeArchive writes an index as an OCI image layout in a tar. dir is a folder
// that does not exist yet, for the layout itself.
func writeArchive(path, name string, dir string, index v1.ImageIndex) (err error) {
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("write OCI layout: %w", err)
	}
	_, tag, _ := strings.Cut(name, ":")
	// The first is what the specification calls it, the second what containerd
	// reads; kubelets look for names without a host under that of Docker Hub.
	names := map[string]string{"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": "docker.io/" + name}
	if err := l.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return fmt.Errorf("write OCI layout: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// Into a file of its own and then renamed: an interrupted build leaves no
	// half image behind.
	out, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeIfThere(out.Name())) }()
	if err := errors.Join(pack(out, dir), out.Chmod(0o644), out.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(out.Name(), path)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// pack writes a folder's files in the order of their names, all made at the
// same instant by the same nobody.
func pack(out io.Writer, dir string) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if entry.IsDir() {
			return w.WriteHeader(&tar.Header{Name: name + "/", Mode: 0o755, ModTime: epoch().Time, Typeflag: tar.TypeDir})
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), ModTime: epoch().Time, Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
	return errors.Join(err, w.Close())
}
