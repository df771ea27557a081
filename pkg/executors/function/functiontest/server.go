// Package functiontest is a function to test against: a server of gRPC on this
// machine. It is imported by tests only.
package functiontest

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
)

// Function answers one call.
type Function func(ctx context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error)

// Serve serves a function until the test ends, and gives its endpoint.
func Serve(t testing.TB, f Function, options ...grpc.ServerOption) string {
	t.Helper()
	return serve(t, "v1", f, options...)
}

// ServeOld serves a function by the older v1beta1 alone.
func ServeOld(t testing.TB, f Function, options ...grpc.ServerOption) string {
	t.Helper()
	return serve(t, "v1beta1", f, options...)
}

func serve(t testing.TB, version string, f Function, options ...grpc.ServerOption) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, listener, version, f, options...)
	return listener.Addr().String()
}

// ServeInMemory serves a function without a network, as the bubbles of synctest need it, and gives what
// dials it.
func ServeInMemory(t testing.TB, f Function) func(ctx context.Context, network, address string) (net.Conn, error) {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	serveOn(t, listener, "v1", f)
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
}

func serveOn(t testing.TB, listener net.Listener, version string, f Function, options ...grpc.ServerOption) {
	t.Helper()
	server := grpc.NewServer(options...)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "apiextensions.fn.proto." + version + ".FunctionRunnerService",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "RunFunction", Handler: handle}},
	}, f)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
}

func handle(f any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // the order is gRPC's
	request := &fnv1.RunFunctionRequest{}
	if err := decode(request); err != nil {
		return nil, err
	}
	return f.(Function)(ctx, request)
}
