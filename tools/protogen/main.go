// Command protogen writes the Go messages of our .proto files, without protoc:
// it compiles a file itself and hands the result to protoc-gen-go, whose version
// go.mod pins.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

// files are the protocols that we speak, from the root of the repository. The
// path becomes part of what is generated, so it must not depend on where that
// root is.
func files() []string { return []string{"pkg/executors/function/fnv1/function.proto"} }

func run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("protogen", flag.ExitOnError)
	root := set.String("root", "../..", "the root of the repository")
	out := set.String("o", "../..", "the folder to write to, each file at its path below the root")
	if err := set.Parse(args); err != nil {
		return err
	}
	request, err := compile(ctx, *root)
	if err != nil {
		return err
	}
	answer, err := generate(ctx, request)
	if err != nil {
		return err
	}
	for _, f := range answer.GetFile() {
		at := filepath.Join(*out, filepath.FromSlash(f.GetName()))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compile reads the files and says what is to be generated from them, as protoc
// would.
func compile(ctx context.Context, root string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(ctx, files()...)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: files(), Parameter: proto.String("paths=source_relative")}
	known := map[string]bool{}
	for _, f := range compiled {
		request.ProtoFile = append(request.ProtoFile, withImports(f, known)...)
	}
	return request, nil
}

// withImports is a file behind everything that it imports: the generator wants
// to know a name before it meets it.
func withImports(f protoreflect.FileDescriptor, known map[string]bool) []*descriptorpb.FileDescriptorProto {
	if known[f.Path()] {
		return nil
	}
	known[f.Path()] = true
	var out []*descriptorpb.FileDescriptorProto
	for i := range f.Imports().Len() {
		out = append(out, withImports(f.Imports().Get(i).FileDescriptor, known)...)
	}
	return append(out, protodesc.ToFileDescriptorProto(f))
}

func generate(ctx context.Context, request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	in, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	plugin := exec.CommandContext(ctx, "go", "tool", "protoc-gen-go")
	var out bytes.Buffer
	plugin.Stdin, plugin.Stdout, plugin.Stderr = bytes.NewReader(in), &out, os.Stderr
	if err := plugin.Run(); err != nil {
		return nil, fmt.Errorf("protoc-gen-go: %w", err)
	}
	answer := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(out.Bytes(), answer); err != nil {
		return nil, fmt.Errorf("read what protoc-gen-go wrote: %w", err)
	}
	if answer.Error != nil {
		return nil, errors.New("protoc-gen-go: " + answer.GetError())
	}
	return answer, nil
}
