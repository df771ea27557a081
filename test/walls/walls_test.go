// Package walls holds the import walls of the house: which room may know which
// other. A wall that stands only in a document falls at the first deadline, so
// these are tests. They walk what `go list -deps` says, therefore they run
// with -count=1: the test cache does not see a new import elsewhere.
package walls

import (
	"slices"
	"strings"
	"testing"
)

const module = "github.com/kubectl-maint/kubectl-maint"

// A wall keeps the packages in `from` from importing what is `forbidden`.
type wall struct {
	name string
	why  string
	from packages
	// except are packages of `from` to which the wall does not apply.
	except packages
	// forbidden are patterns of import paths: "x/..." is x and all below it.
	forbidden packages
	// doors are rooms of their own: what they import is their wall's matter.
	doors packages
	// direct looks at import statements alone, not at what they lead to.
	direct bool
}

// packages are patterns of import paths, those of this module without its
// name: "pkg/plan" is that package, "pkg/cmd/..." it and all below it.
type packages []string

// rooms must exist: a wall around nothing would pass for ever.
func rooms() packages {
	return packages{
		"pkg/schedule", "pkg/selector", "pkg/annotations", "pkg/informer", "pkg/kube", "pkg/executors", "pkg/executors/*/...",
		"pkg/agent", "pkg/cmd", "cmd/kubectl-maint", "cmd/agent",
	}
}

// edges are the rooms that know Kubernetes or the outside. Every other package
// under pkg/ counts as part of the core and has its line in core(): whoever adds one
// either keeps it pure or names it here, and says in the review why.
func edges() packages {
	return packages{"pkg/annotations/...", "pkg/informer/...", "pkg/kube/...", "pkg/executors/...", "pkg/agent/...", "pkg/cmd/..."}
}

func walls() []wall {
	return slices.Concat(coreWalls(), contractWalls(), edgeWalls(), sdkWalls())
}

// coreWalls keep what decides free of everything but values.
func coreWalls() []wall {
	return []wall{
		{
			name:      "the core knows no Kubernetes",
			why:       "status, next, simulate and the agent call the same functions; what needs a cluster cannot be simulated",
			from:      packages{"pkg/..."},
			except:    append(edges(), "pkg/selector"),
			doors:     packages{"pkg/selector"},
			forbidden: packages{"k8s.io/...", "sigs.k8s.io/..."},
		},
		{
			name:      "label selectors are Kubernetes' own, and nothing else of it comes in",
			why:       "there is one grammar; apimachinery's labels bring no client, no kinds and no clock with them",
			from:      packages{"pkg/selector"},
			forbidden: packages{"k8s.io/client-go/...", "k8s.io/api/...", "k8s.io/apimachinery/pkg/apis/...", "k8s.io/apimachinery/pkg/runtime/...", "k8s.io/apimachinery/pkg/util/wait/...", "sigs.k8s.io/...", "pkg/agent/...", "pkg/cmd/..."},
		},
		{
			name:      "the core has no effects",
			why:       "it takes values and `now` and returns a verdict; a log line, an environment variable or a request would make a preview lie",
			from:      packages{"pkg/..."},
			except:    edges(),
			forbidden: packages{"context", "log/...", "net/http/...", "os/...", "math/rand/...", "crypto/rand"},
			direct:    true,
		},
		{
			name:      "time knows nothing but time",
			why:       "pkg/schedule is the lowest floor; it must be readable and testable alone",
			from:      packages{"pkg/schedule/..."},
			forbidden: except("pkg/schedule/..."),
		},
		{
			name:      "the core does not look up",
			why:       "an arrow from a verdict to the one who asked for it is a cycle waiting to close",
			from:      packages{"pkg/..."},
			except:    edges(),
			forbidden: append(edges(), "cmd/..."),
		},
	}
}

// contractWalls keep light what everybody imports.
func contractWalls() []wall {
	return []wall{
		{
			name:      "the wire spelling needs no client",
			why:       "whoever reads our annotations (a GitOps tool, a linter) should not get client-go with the names",
			from:      packages{"pkg/annotations/..."},
			forbidden: packages{"k8s.io/client-go/...", "pkg/executors/...", "pkg/agent/...", "pkg/cmd/...", "cmd/..."},
		},
		{
			name:      "list and watch know nothing of ours",
			why:       "a cache says how far it has come, whoever keeps it; with our keys in it nobody else could",
			from:      packages{"pkg/informer/..."},
			forbidden: except("pkg/informer/..."),
		},
		{
			name:      "clients are few",
			why:       "client-go's set of clients has those of all groups and versions: seven megabytes of each binary, and fifty clients for every account",
			from:      packages{"pkg/...", "cmd/..."},
			forbidden: packages{"k8s.io/client-go/kubernetes"},
			direct:    true,
		},
		{
			name:      "typed clients know nothing of ours",
			why:       "executors, agent and plugin all stand on them",
			from:      packages{"pkg/kube/..."},
			forbidden: except("pkg/kube/..."),
		},
		{
			name:      "the contract knows no world",
			why:       "pkg/executors says what an executor is; with a world in it, every user of the contract carries that world's SDK",
			from:      packages{"pkg/executors"},
			forbidden: packages{"pkg/executors/*/...", "github.com/aws/..."},
		},
	}
}

// edgeWalls keep executors, the agent and the plugin from one another.
func edgeWalls() []wall {
	return []wall{
		{
			name:      "executors do not know who calls them",
			why:       "an executor is handed facts and clients; one that knows the agent or the plugin decides for itself",
			from:      packages{"pkg/executors/..."},
			forbidden: packages{"pkg/agent/...", "pkg/cmd/...", "cmd/..."},
		},
		{
			name:      "the agent knows executors, not worlds",
			why:       "cmd/agent hands the executors in; the loop must be testable without an SDK, and a world addable without touching the loop",
			from:      packages{"pkg/agent/..."},
			forbidden: packages{"pkg/executors/*/...", "github.com/aws/...", "pkg/cmd/...", "cmd/..."},
		},
		{
			name:      "the plugin writes intent, the agent acts",
			why:       "a kubectl plugin that could drain or stop databases by itself would do so with the user's rights and without a record",
			from:      packages{"pkg/cmd/...", "cmd/kubectl-maint/..."},
			forbidden: packages{"pkg/agent/...", "pkg/executors/...", "github.com/aws/...", "cmd/agent/..."},
		},
		{
			name:      "what is shown are values",
			why:       "whoever has the objects can show them: a command, a page, a test without a cluster",
			from:      packages{"pkg/cmd/view", "pkg/cmd/instant", "pkg/cmd/remedy", "pkg/cmd/exit"},
			forbidden: packages{"k8s.io/client-go/...", "k8s.io/cli-runtime/...", "github.com/spf13/cobra"},
		},
	}
}

// sdkWalls give a heavy dependency one room with a door.
func sdkWalls() []wall {
	return []wall{
		{
			name:      "one room for AWS",
			why:       "a heavy dependency lives in one room with a door, so that it can be replaced, faked and left out",
			from:      packages{"pkg/...", "cmd/..."},
			except:    packages{"pkg/executors/aws/..."},
			forbidden: packages{"github.com/aws/..."},
			direct:    true,
		},
		{
			name:      "one room for gRPC",
			why:       "functions are the one thing that we call that way; everything else speaks HTTP through the guarded client",
			from:      packages{"pkg/...", "cmd/..."},
			except:    packages{"pkg/executors/function/..."},
			forbidden: packages{"google.golang.org/grpc/..."},
			direct:    true,
		},
		{
			name:      "one room for label selectors",
			why:       "there is one grammar, and one place that says what is wrong with a selector",
			from:      packages{"pkg/...", "cmd/..."},
			except:    packages{"pkg/selector", "pkg/agent/agenttest"}, // that is an API server for tests
			forbidden: packages{"k8s.io/apimachinery/pkg/labels"},
			direct:    true,
		},
		{
			name:      "one room for evictions",
			why:       "draining has one place where its dangerous defaults are set right",
			from:      packages{"pkg/...", "cmd/..."},
			except:    packages{"pkg/executors/node/..."},
			forbidden: packages{"k8s.io/kubectl/pkg/drain"},
			direct:    true,
		},
		{
			name:      "no translations",
			why:       "kubectl's commands read their translations before the first line of main: 14 ms of each of our commands, and 2 MB",
			from:      packages{"cmd/kubectl-maint", "cmd/agent"},
			forbidden: packages{"k8s.io/kubectl/pkg/util/i18n", "k8s.io/kubectl/pkg/cmd/..."},
		},
	}
}

func TestImportWalls(t *testing.T) {
	g := load(t)
	for _, w := range walls() {
		t.Run(w.name, func(t *testing.T) {
			for _, chain := range g.breaches(w) {
				t.Errorf("%s\n  why the wall is there: %s", strings.Join(chain, "\n    imports "), w.why)
			}
		})
	}
}

func TestTheRoomsThatTheWallsStandInExist(t *testing.T) {
	g := load(t)
	for _, room := range rooms() {
		if len(g.matching(packages{room})) == 0 {
			t.Errorf("no package is %s: the walls around it guard nothing; correct the tables here or in the design", room)
		}
	}
}

func TestAWorldDoesNotImportAnother(t *testing.T) {
	g := load(t)
	for _, path := range g.matching(packages{"pkg/executors/*/..."}) {
		if world(path) == "builtin" {
			continue // puts the worlds together, and is one of none
		}
		for _, imported := range g[path].Imports {
			if a, b := world(path), world(imported); b != "" && a != b {
				t.Errorf("%s imports %s\n  why the wall is there: worlds come and go alone; what two of them share belongs into pkg/executors or its internal packages", path, imported)
			}
		}
	}
}

// world is the name of the executor that a package belongs to, or empty: what
// lies in pkg/executors/internal is what worlds share.
func world(path string) string {
	below, ok := strings.CutPrefix(path, module+"/pkg/executors/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(below, "/")
	if name == "internal" {
		return ""
	}
	return name
}

// A wall that never breaks proves nothing: these houses are built wrong.
func TestAWallSeesABreach(t *testing.T) {
	g := graph{}
	g.add("pkg/plan", module+"/pkg/names")
	g.add("pkg/names", "k8s.io/api/core/v1")
	g.add("pkg/clean", "k8s.iology/lookalike")
	g["k8s.io/api/core/v1"] = listed{}
	forbidden := wall{from: packages{"pkg/..."}, forbidden: packages{"k8s.io/..."}}

	got := g.breaches(forbidden)
	want := [][]string{
		{module + "/pkg/names", "k8s.io/api/core/v1"},
		{module + "/pkg/plan", module + "/pkg/names", "k8s.io/api/core/v1"},
	}
	if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("through a package between:\n got %q\nwant %q", got, want)
	}

	forbidden.direct = true
	if got := g.breaches(forbidden); len(got) != 1 {
		t.Errorf("direct imports alone: got %q, want pkg/names only", got)
	}
	forbidden.except = packages{"pkg/names"}
	if got := g.breaches(forbidden); len(got) != 0 {
		t.Errorf("with pkg/names excepted: got %q, want nothing", got)
	}
	forbidden.direct = false
	if got := g.breaches(forbidden); len(got) != 1 {
		t.Errorf("through pkg/names: got %q, want pkg/plan only", got)
	}
	forbidden.doors = packages{"pkg/names"}
	if got := g.breaches(forbidden); len(got) != 0 {
		t.Errorf("with pkg/names a door: got %q, want nothing", got)
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"pkg/plan", module + "/pkg/plan", true},
		{"pkg/plan", module + "/pkg/planning", false},
		{"pkg/plan", module + "/pkg/plan/sub", false},
		{"pkg/cmd/...", module + "/pkg/cmd", true},
		{"pkg/cmd/...", module + "/pkg/cmd/sub/deep", true},
		{"pkg/executors/*/...", module + "/pkg/executors", false},
		{"pkg/executors/*/...", module + "/pkg/executors/aws", true},
		{"pkg/executors/*/...", module + "/pkg/executors/aws/rds", true},
		{"github.com/aws/...", "github.com/aws/aws-sdk-go-v2/service/rds", true},
		{"github.com/aws/...", "github.com/awslabs/other", false},
		{"log/...", "log/slog", true},
		{"context", "context", true},
		{"!pkg/schedule/...", module + "/pkg/plan", true},
		{"!pkg/schedule/...", module + "/pkg/schedule/internal/zones", false},
		{"!pkg/schedule/...", "time", false},
	} {
		if got := matches(c.pattern, c.path); got != c.want {
			t.Errorf("%s matches %s: %t, want %t", c.pattern, c.path, got, c.want)
		}
	}
}
