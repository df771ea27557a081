package look

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// late is a client whose first lists of restores are answered otherwise.
type late struct {
	kube.Basic
	answers []func(context.Context) error // to one after another
}

// IsWatchListSemanticsUnSupported is asked by client-go: a client in memory sends no bookmarks.
func (l *late) IsWatchListSemanticsUnSupported() bool { return true }

func (l *late) CoreV1() typedcorev1.CoreV1Interface { return lateCore{l.Basic.CoreV1(), l} }

type lateCore struct {
	typedcorev1.CoreV1Interface
	late *late
}

func (c lateCore) ConfigMaps(namespace string) typedcorev1.ConfigMapInterface {
	return lateConfigMaps{c.CoreV1Interface.ConfigMaps(namespace), c.late}
}

type lateConfigMaps struct {
	typedcorev1.ConfigMapInterface
	late *late
}

func (c lateConfigMaps) List(ctx context.Context, o metav1.ListOptions) (*corev1.ConfigMapList, error) {
	if strings.HasPrefix(o.LabelSelector, annotations.LabelKind+"="+annotations.KindRestore) && len(c.late.answers) > 0 {
		answer := c.late.answers[0]
		c.late.answers = c.late.answers[1:]
		if err := answer(ctx); err != nil {
			return nil, err
		}
	}
	return c.ConfigMapInterface.List(ctx, o)
}

// An API server whose first answers come late, or not at all, ends no live view: it says so, and shows the status
// once it can.
func TestAFirstLookThatFailsEndsNoLiveStatus(t *testing.T) {
	slow := func(context.Context) error { time.Sleep(15 * time.Second); return nil }
	for name, c := range map[string]struct {
		answers []func(context.Context) error
		said    string
		shown   time.Duration // after it began
	}{
		"slow answers": {[]func(context.Context) error{slow}, "[not everything was answered within 10s]", 15 * time.Second},
		"connections that are refused": {[]func(context.Context) error{func(context.Context) error {
			return &url.Error{Op: "Get", URL: "https://cluster", Err: errors.New("connection refused")}
		}}, "lists others]", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := cmdtest.NewCluster(t, nil, cmdtest.Agent(), cmdtest.Plan("orders", "", cmdtest.Noting(annotations.StatusPhase, "Idle")))
				ctx, leave := context.WithTimeout(t.Context(), time.Minute)
				defer leave()
				k := &factory.Cluster{Kube: &late{Basic: cluster.Kube, answers: c.answers}, Namespace: "shop"}
				var told []string
				k.Broken = func(err error) { told = append(told, err.Error()) }
				o := &statusOptions{Factory: &factory.Factory{Env: factory.Env{IOStreams: genericiooptions.NewTestIOStreamsDiscard(), Now: time.Now, Name: "kubectl maint"}}}
				begun, after := time.Now(), time.Duration(0)
				err := o.follow(ctx, k, func(lines []view.Line) {
					if after == 0 && strings.Contains(strings.Join(view.Texts(lines), "\n"), "orders") {
						after = time.Since(begun)
					}
				})
				if after < c.shown || after > c.shown+2*time.Second {
					t.Errorf("it ends with %v, and shows the plan after %s", err, after)
				}
				if got := fmt.Sprint(told); !strings.HasSuffix(got, c.said) || len(told) != 1 {
					t.Errorf("told of %q", got)
				}
			})
		})
	}
}

// Off a terminal, too, an API server that is silent is told of in time, and what has changed meanwhile is printed
// once it answers.
func TestASilentServerIsToldOfWhereLinesAreWritten(t *testing.T) {
	const begins, silent = 5 * time.Second, 68 * time.Second
	for name, writes := range map[string]func(*statusOptions, context.Context, *factory.Cluster) error{
		"status -w":         func(o *statusOptions, ctx context.Context, k *factory.Cluster) error { return o.follow(ctx, k, nil) },
		"status -w -o json": (*statusOptions).stream,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := cmdtest.NewCluster(t, nil, cmdtest.Agent(), cmdtest.Plan("orders", "", cmdtest.Noting(annotations.StatusPhase, "Idle")))
				ctx, leave := context.WithTimeout(t.Context(), 2*time.Minute)
				defer leave()
				begun := time.Now()
				hangs := func(ctx context.Context) error {
					if time.Since(begun) < begins || time.Since(begun) > begins+silent {
						return nil
					}
					select {
					case <-ctx.Done():
					case <-time.After(begins + silent - time.Since(begun)):
					}
					return ctx.Err()
				}
				k := &factory.Cluster{Kube: &late{Basic: cluster.Kube, answers: slices.Repeat([]func(context.Context) error{hangs}, 100)}, Namespace: "shop"}
				said, out := timed{begun: begun, word: "not everything was answered within 10s; what is shown may be old"}, timed{begun: begun, word: "meanwhile"}
				o := &statusOptions{out: print.NewValues(), Factory: &factory.Factory{Env: factory.Env{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &said}, Now: time.Now, Name: "kubectl maint"}}}
				observed := func(cm *corev1.ConfigMap) {
					cm.Annotations[annotations.StatusObserved] = annotations.Observed(cm)
				}
				flags := &cobra.Command{}
				o.out.AddFlags(flags)
				if err := flags.Flags().Set("output", "json"); err != nil {
					t.Fatal(err)
				}
				go func() {
					time.Sleep(begins + time.Second)
					cluster.Stores("configmaps", cmdtest.Plan("orders", "", cmdtest.Noting(annotations.StatusPhase, "Idle", annotations.StatusMessage, "meanwhile"), observed))
				}()
				if err := writes(o, ctx, k); exit.CodeOf(err) != exit.CodeInterrupted {
					t.Errorf("it ends with %v", err)
				}
				if said.after < begins || said.after > begins+15*time.Second {
					t.Errorf("told after %s: %s", said.after, said.text.String())
				}
				if out.after > begins+silent+3*time.Second || out.after == 0 {
					t.Errorf("shown after %s: %s", out.after, out.text.String())
				}
			})
		})
	}
}

// timed keeps when a word was first written.
type timed struct {
	begun time.Time
	word  string
	text  strings.Builder
	after time.Duration
}

func (w *timed) Write(p []byte) (int, error) {
	if w.text.Write(p); w.after == 0 && strings.Contains(w.text.String(), w.word) {
		w.after = time.Since(w.begun)
	}
	return len(p), nil
}
