package cmd

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

// silentServer takes connections, and says nothing on any of them.
func silentServer(t *testing.T) (address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var taken []net.Conn
	go func() {
		for {
			one, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			taken = append(taken, one)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, one := range taken {
			_ = one.Close()
		}
	})
	return "http://" + listener.Addr().String()
}

// unanswered is a command line that an API server is asked for, and what it ends with where that
// says nothing.
type unanswered struct {
	line string
	code int    // 1, where it is 0
	says string // that it does not answer, where it is empty
	fine bool
}

func unansweredLines() []unanswered {
	return []unanswered{
		{line: "schedule orders --at 2h --step call=webhook,url=https://example.org/hook"},
		{line: "next orders"},
		{line: "check orders"},
		{line: "trigger orders"},
		{line: "trigger orders --wait"},
		{line: "trigger orders --wait --timeout TIMEOUT", code: 124},
		{line: "trigger orders --dry-run --wait --timeout TIMEOUT", code: 124},
		{line: "rollback orders --wait"},
		{line: "rollback orders --wait --timeout TIMEOUT", code: 124},
		{line: "skip orders --next 1"},
		{line: "unskip orders"},
		{line: "pause orders"},
		{line: "pause --all -A --reason audit"},
		{line: "resume orders"},
		{line: "resume --all"},
		{line: "approve maint-run-orders-a"},
		{line: "approve maint-run-orders-a --wait --timeout TIMEOUT", code: 124},
		{line: "reject maint-run-orders-a"},
		{line: "abort maint-run-orders-a --yes"},
		{line: "abort maint-run-orders-a --yes --wait --timeout TIMEOUT", code: 124},
		{line: "retry maint-run-orders-a"},
		{line: "retry maint-run-orders-a --wait --timeout TIMEOUT", code: 124},
		{line: "allow weekends --for 2h --reason CHG-1"},
		{line: "freeze weekends --for 2h --reason CHG-1"},
		{line: "hibernate dev --for 2h"},
		{line: "hibernate dev --for 2h --wait --timeout TIMEOUT", code: 124},
		{line: "wake dev --for 2h"},
		{line: "restore list"},
		{line: "restore show dev"},
		{line: "restore edit dev apps"},
		{line: "drain node-1 --yes"},
		{line: "drain node-1 --plan"},
		{line: "drain node-1 --yes --wait --timeout TIMEOUT", code: 124},
		{line: "release node-1", says: "name the requestor with --requestor"},
		{line: "release node-1 --requestor ops"},
		{line: "release node-1 --requestor ops --wait --timeout TIMEOUT", code: 124},
		{line: "status"},
		{line: "status -A"},
		{line: "status orders"},
		{line: "status -w"},
		{line: "list"},
		{line: "list -A"},
		{line: "list runs"},
		{line: "list policies"},
		{line: "history"},
		{line: "history orders"},
		{line: "report --last 1h"},
		{line: "describe orders"},
		{line: "logs maint-run-orders-a"},
		{line: "logs maint-run-orders-a -f"},
		{line: "why orders"},
		{line: "why node/node-1"},
		{line: "savings"},
		{line: "wait orders"},
		{line: "wait orders --timeout TIMEOUT", code: 124},
		{line: "wait node/node-1 --timeout TIMEOUT", code: 124},
		{line: "calendar"},
		{line: "calendar -A"},
		{line: "install --apply"},
		{line: "install --diff"},
		{line: "uninstall --yes"},
		{line: "uninstall --dry-run=client"},
		{line: "adopt --all --yes"},
		{line: "version"},
		{line: "doctor"},
		{line: "doctor orders"},
		{line: "__complete trigger x", fine: true},
	}
}

// asksNobody are the commands that need no API server.
func asksNobody() []string {
	return []string{"new", "lint", "simulate", "explain", "rbac", "completion", "options", "help"}
}

// An API server that takes the connection and never answers: every command ends, says so, and
// tells scripts that it failed, be there a --request-timeout or none.
func TestWhereNobodyAnswersEveryCommandEnds(t *testing.T) {
	const limit = 300 * time.Millisecond
	config := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c, user: c, namespace: shop}}]\nusers: [{name: c, user: {}}]\n", silentServer(t))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	type ended struct {
		unanswered
		cmdtest.Printed
		flags string
		took  time.Duration
	}
	lines, results := unansweredLines(), make(chan ended)
	for _, one := range lines {
		for _, flags := range []string{"", "--request-timeout=" + limit.String()} {
			go func() {
				began := time.Now()
				var out, errOut bytes.Buffer
				env := factory.Env{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, Name: "kubectl maint", Version: "v0.1.0", Now: time.Now, Zone: "UTC"}
				if flags == "" {
					env.AnswerWithin = limit
				}
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				args := strings.Fields(strings.ReplaceAll(one.line, "TIMEOUT", (limit / 2).String()))
				args = append(args, "--kubeconfig", config, "--cache-dir", filepath.Join(filepath.Dir(config), "cache"))
				if flags != "" {
					args = append(args, flags)
				}
				if one.fine { // what is completed stands last
					args = strings.Fields("__complete trigger --kubeconfig " + config + " " + flags + " x")
				}
				code := Run(ctx, factory.New(env), args)
				results <- ended{one, cmdtest.Printed{Code: code, Out: out.String(), Err: errOut.String()}, flags, time.Since(began)}
			}()
		}
	}
	var asked []string
	for range 2 * len(lines) {
		r := <-results
		asked = append(asked, strings.Fields(r.line)[0])
		t.Run(r.line+" "+r.flags, func(t *testing.T) {
			want := max(r.code, 1)
			if r.fine {
				want = 0
			}
			t.Logf("exit code %d after %s\n%s%s", r.Code, r.took.Round(10*time.Millisecond), r.Out, r.Err)
			says := cmp.Or(r.says, "does not answer")
			if want == 124 { // on a busy machine before anything is asked
				says = "--timeout passed: "
			}
			_, said, _ := strings.Cut(r.Err, "error: ")
			if r.Code != want || !r.fine && !strings.Contains(said, says) {
				t.Errorf("exit code %d, want %d, and why", r.Code, want)
			}
			if want == 124 && strings.Count(said, "--timeout passed") != 1 {
				t.Errorf("what the timeout cut off is told as %q", said)
			}
			if r.took > 20*time.Second {
				t.Errorf("it took %s", r.took)
			}
		})
	}
	for _, c := range New(factory.Env{Name: "kubectl maint"}).Commands() {
		if !slices.Contains(asked, c.Name()) && !slices.Contains(asksNobody(), c.Name()) {
			t.Errorf("nobody tried %s", c.Name())
		}
	}
}
