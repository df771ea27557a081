package ask_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

// What a run left is acknowledged by its name also when its object is gone.
func TestResumeAcknowledgesForARunThatIsGone(t *testing.T) {
	const said = "run/maint-run-orders-x: what it did not put back is acknowledged; it stays as it is\n"
	intent := map[string]string{annotations.Resume: "maint-run-orders-x", annotations.Actor(annotations.Resume): "Jane@example.com", annotations.Reason(annotations.Resume): "known"}
	for _, c := range []struct {
		name, arg, err string
		flags          []string
		said           string
		want           map[string]string
	}{
		{name: "its name", arg: "maint-run-orders-x", said: said, want: intent},
		{name: "without the first letters", arg: "orders-x", said: said, want: intent},
		{name: "with its kind", arg: "run/maint-run-orders-x", said: said, want: intent},
		{name: "a trial", arg: "orders-x", flags: []string{"--dry-run"}, said: strings.Replace(said, ";", " (dry run);", 1)},
		{name: "a run that left nothing", arg: "maint-run-orders-y", err: `there is no plan or policy or run "maint-run-orders-y"`},
		{name: "a plan of that name", arg: "plan/maint-run-orders-x", err: `there is no plan or policy or run "maint-run-orders-x"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Leaving(t)...)
			got := o.Maint(append([]string{"resume", c.arg, "--reason", "known"}, c.flags...)...)
			if !strings.Contains(got.Err, c.err) || got.Out != c.said || (got.Code == 0) != (c.err == "") {
				t.Errorf("%+v", got)
			}
			cm, err := o.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), "orders", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, cm.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}
