package function_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/functiontest"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/http"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// stalling dials servers that send so many bytes on each connection, and then nothing more. It counts
// what was read of the open ones.
type stalling struct {
	after int64

	mu         sync.Mutex
	read, most int64
}

func (s *stalling) count(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read += n
	s.most = max(s.most, s.read)
}

func (s *stalling) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := http.NewDialer(http.Rules{Allow: []string{"127.0.0.1/32"}})(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &stalledConn{Conn: conn, of: s, closed: make(chan struct{})}, nil
}

type stalledConn struct {
	net.Conn
	of     *stalling
	read   atomic.Int64
	once   sync.Once
	closed chan struct{}
}

func (c *stalledConn) Read(p []byte) (int, error) {
	if c.read.Load() >= c.of.after {
		<-c.closed
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	c.of.count(int64(n))
	return n, err
}

func (c *stalledConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.of.count(-c.read.Load())
	})
	return c.Conn.Close()
}

// long is an answer of one text of so many bytes.
func long(t *testing.T, bytes int) functiontest.Function {
	t.Helper()
	return said(&fnv1.RunFunctionResponse{Output: fields(t, `{"text": "`+strings.Repeat("x", bytes)+`"}`)})
}

// A namespace whose servers begin large answers, and do not end them, takes its own part of the room
// alone, and gives it back.
func TestLargeAnswersOfOneNamespaceAreNotReadAllAtOnce(t *testing.T) {
	const calls, most = 16, 16*(64<<10+32<<10) + 4<<20 + function.MaxSize // what does not count, its part, and one large answer
	large := functiontest.Serve(t, long(t, 3_900_000))
	runner, sleeps := function.Runner{Answers: function.NewAnswers()}, function.Sleeps{Answers: function.NewAnswers()}
	for name, asks := range map[string]func(ctx context.Context, namespace string, s *stalling) (ok bool, said string){
		"of steps": func(ctx context.Context, namespace string, s *stalling) (bool, string) {
			call := callOf(large)
			call.Plan.Namespace = namespace
			if s != nil {
				call.Clients.Dial, props(call).Timeout = s.dial, &document.Duration{Duration: 2 * time.Second}
			}
			out := runner.Pass(ctx, call)
			if diff := cmp.Diff(map[string]any{"truncated": true}, out.Outputs); out.State == executors.Done && diff != "" {
				t.Errorf("it keeps %.200s", fmt.Sprint(out.Outputs))
			}
			return out.State == executors.Done, out.Message
		},
		"of targets of HibernatePlans": func(ctx context.Context, namespace string, s *stalling) (bool, string) {
			call := sleepOf(large)
			call.Plan.Namespace = namespace
			if s != nil {
				call.Clients.Dial = s.dial
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 3*time.Second) // a second less for the call
				defer cancel()
			}
			said := fmt.Sprint(sleeps.Validate(ctx, call))
			return strings.Contains(said, "cannot be read: output.text"), said
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stalling{after: 3_500_000}
			var all sync.WaitGroup
			for range calls {
				all.Go(func() {
					if ok, said := asks(t.Context(), "greedy", s); ok || !strings.Contains(said, "no answer within") && !strings.Contains(said, "there was no room for it beside those of other steps") {
						t.Errorf("it says %s", said)
					}
				})
			}
			if ok, said := asks(t.Context(), "fair", nil); !ok {
				t.Errorf("another namespace: %s", said)
			}
			all.Wait()
			if s.most > most || s.most < 1<<20 {
				t.Errorf("%d KiB were read at once, of at most %d", s.most>>10, most>>10)
			}
			if ok, said := asks(t.Context(), "greedy", nil); !ok {
				t.Errorf("once they have ended: %s", said)
			}
		})
	}
}

// heap is how much memory is in use.
func heap() int64 {
	var m runtime.MemStats
	for range 3 { // what is pooled goes with the second
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What functions said before the last of a pipeline is not kept until its end.
func TestAPipelineOfLargeAnswersKeepsOne(t *testing.T) {
	var last int64
	text := fields(t, `{"text": "`+strings.Repeat("x", 1_900_000)+`"}`)
	large := functiontest.Serve(t, said(&fnv1.RunFunctionResponse{Output: text, Context: text}))
	endpoints := slices.Repeat([]string{large}, plan.MaxFunctions-1)
	endpoints = append(endpoints, functiontest.Serve(t, func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		last = heap()
		return &fnv1.RunFunctionResponse{}, nil
	}))
	before := heap()
	out := function.Pipeline{Answers: function.NewAnswers()}.Pass(t.Context(), pipelineOf(endpoints...))
	ends(t, out, executors.Done, false, "", "pipeline of 20 functions succeeded")
	if kept := last - before; kept > 5*function.MaxSize {
		t.Errorf("%d MiB of %d answers are kept", kept>>20, len(endpoints)-1)
	}
	for name, said := range out.Outputs {
		if diff := cmp.Diff(map[string]any{"truncated": true}, said); diff != "" && name != "t" {
			t.Errorf("of %s it keeps %.200s", name, fmt.Sprint(said))
		}
	}
}

// What a step requires takes the memory of one copy, however many functions see it.
func TestTheFunctionsOfAPipelineShareWhatTheStepRequires(t *testing.T) {
	const values = 10_000 // of 80 bytes and more, once they are ready to be sent
	var first, calls, saw atomic.Int64
	endpoint := functiontest.Serve(t, func(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		saw.Add(int64(len(r.GetRequiredResources()["db"].GetItems())))
		r.Reset() // this copy is the server's
		if calls.Add(1) == 1 {
			first.Store(heap())
		}
		return &fnv1.RunFunctionResponse{}, nil
	})
	call := pipelineOf(slices.Repeat([]string{endpoint}, plan.MaxFunctions)...)
	required := object("ConfigMap", "shop", "a").Object
	required["list"] = slices.Repeat([]any{true}, values)
	call.Objects.Required = map[string][]map[string]any{"db": {required}}
	before := heap()
	ends(t, function.Pipeline{}.Pass(t.Context(), call), executors.Done, false, "")
	if calls.Load() != plan.MaxFunctions || saw.Load() != plan.MaxFunctions {
		t.Errorf("%d functions were called, and %d saw what the step requires", calls.Load(), saw.Load())
	}
	if taken := first.Load() - before; taken > 4*values*100 {
		t.Errorf("before the first function answers, %d KiB are in use", taken>>10)
	}
}

// dense is an answer whose fields take more than its bytes do: two of them are more than a namespace has
// room for.
func dense(t *testing.T) functiontest.Function {
	t.Helper()
	return said(&fnv1.RunFunctionResponse{Output: fields(t, `{"list": [`+strings.TrimSuffix(strings.Repeat("0,", 15_000), ",")+`]}`)})
}

// The fields of an answer take more than its bytes do.
func TestAnAnswerOfManyFieldsIsALargeOne(t *testing.T) {
	many, called, release := functiontest.Serve(t, dense(t)), make(chan struct{}), make(chan struct{})
	hangs := functiontest.Serve(t, func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		close(called)
		<-release
		return &fnv1.RunFunctionResponse{}, nil
	})
	answers := function.NewAnswers()
	first := pipelineOf(many, hangs) // it has the place for large answers until its end
	pipeline(first).Functions[0].Timeout = &document.Duration{Duration: time.Minute}
	pipeline(first).Functions[1].Timeout = &document.Duration{Duration: time.Minute} // 30 s, as an answer before was large
	var all sync.WaitGroup
	all.Go(func() {
		ends(t, function.Pipeline{Answers: answers}.Pass(t.Context(), first), executors.Done, false, "")
	})
	<-called
	second := callOf(many)
	props(second).Timeout = &document.Duration{Duration: 3 * time.Second}
	ends(t, function.Runner{Answers: answers}.Pass(t.Context(), second), executors.Failed, false, "Timeout", "its answer is large, and within 3s there was no room for it")
	close(release)
	all.Wait()
	props(second).Timeout = &document.Duration{Duration: time.Minute}
	ends(t, function.Runner{Answers: answers}.Pass(t.Context(), second), executors.Done, false, "")
}

// A step that has the place for large answers is cut short for others, and says so.
func TestAPipelineThatIsCutShortForALargeAnswerSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		before   time.Duration                     // until the first function answers
		requires map[string]*fnv1.ResourceSelector // by the first function; nil: it gives a large answer
		says     string
	}{
		"between two functions":   {4 * time.Minute, nil, "function b at b.example.org:9443: not called: an answer before was large, so the functions of this step may take 3m0s in all"},
		"after much was required": {4 * time.Minute, byName("many", 2), "function b at b.example.org:9443: not called: much was read for this step, so the functions of this step may take 3m0s in all"},
		"in a call after that":    {0, byName("many", 2), "function b at b.example.org:9443: no answer within 30s (a call may take no longer here: much was read for this step)"},
		"in a call":               {0, nil, "function b at b.example.org:9443: no answer within 30s (a call may take no longer here: an answer before was large)"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				many := dense(t)
				a := functiontest.ServeInMemory(t, func(ctx context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
					if c.requires == nil {
						time.Sleep(c.before)
						return many(ctx, r)
					}
					if len(r.GetRequiredResources()) == 0 { // later a call may take 30 s
						time.Sleep(c.before)
					}
					return &fnv1.RunFunctionResponse{Requirements: &fnv1.Requirements{Resources: c.requires}}, nil
				})
				b := functiontest.ServeInMemory(t, func(ctx context.Context, _ *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				})
				call := pipelineOf("a.example.org:9443", "b.example.org:9443")
				withObjects(&call.Clients)
				for i := range pipeline(call).Functions {
					pipeline(call).Functions[i].Timeout = &document.Duration{Duration: 5 * time.Minute}
				}
				call.Clients.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					return map[bool]func(context.Context, string, string) (net.Conn, error){true: a, false: b}[address == "a.example.org:9443"](ctx, network, address)
				}
				out := function.Pipeline{Answers: function.NewAnswers()}.Pass(t.Context(), call)
				if ends(t, out, executors.Failed, false, "Timeout"); out.Message != c.says {
					t.Errorf("it says %q, want %q", out.Message, c.says)
				}
			})
		})
	}
}
