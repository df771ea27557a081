package agent_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// denseList is a list of so many bytes, in which each two are a value.
func denseList(bytes int) string { return "[0" + strings.Repeat(",0", bytes/2) + "]" }

// Documents that are small and hold many values take tens of times their bytes as they are
// understood. Many of them together leave the agent within its memory.
func TestManyDenseHibernatePlansFillNoAgent(t *testing.T) {
	const plans = 150
	x := newCrashes(t)
	x.prepare("theirs")
	for i := range plans {
		text := "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec:\n  schedule:\n    timezone: UTC\n    offHours:\n    - {start: \"20:00\", end: \"06:00\", daysOfWeek: [MON, TUE]}\n" +
			"  targets:\n  - name: fn\n    type: function\n    parameters: {endpoint: 'fn.theirs:9443', input: {a: " + denseList(38_000) + "}}\n"
		cm := annotations.NewHibernatePlan("theirs", fmt.Sprintf("dense-%d", i), text, "")
		if _, err := x.admin.CoreV1().ConfigMaps("theirs").Create(x.ctx, cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	x.staysSmall("the plans are looked at", func() (bool, string) {
		all, err := x.admin.CoreV1().ConfigMaps("theirs").List(x.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindHibernatePlan})
		if err != nil {
			return false, err.Error()
		}
		phases := map[string]int{}
		for _, cm := range all.Items {
			phases[cm.Annotations[annotations.StatusPhase]]++
		}
		return phases[""] == 0 && len(all.Items) == plans, fmt.Sprint(phases, all.Items[0].Annotations)
	})
}

// shortly is after what takes its memory while it is read, and keeps none of it.
const shortly = 5 * time.Second

// staysSmall fails if an agent comes near its limit before something holds, and in the half
// minute after it.
func (x *crashes) staysSmall(what string, holds func() (bool, string)) {
	x.t.Helper()
	x.staysSmallFor(30*time.Second, what, holds)
}

// staysSmallFor is the same with another time after it.
func (x *crashes) staysSmallFor(after time.Duration, what string, holds func() (bool, string)) {
	x.t.Helper()
	if runtime.GOOS != "linux" {
		x.t.Skip("an agent's memory is read from /proc")
	}
	x.t.Setenv("GOMEMLIMIT", "230MiB") // nine tenths of the manifest's limit, as the agent sets it itself
	began := time.Now()
	p := x.direct()
	defer p.Kill()
	followed := p.FollowMemory()
	eventually(x.t, x.ctx, what, holds)
	time.Sleep(after)
	rests, err := p.OwnMemory()
	if err != nil {
		x.t.Fatal(err)
	}
	peak := followed()
	x.t.Logf("%s; the agent had %d MiB of its own at most, and has %d MiB %s later (%s in all)", what, peak>>20, rests>>20, after, time.Since(began).Round(time.Second))
	if peak == 0 || peak > 200<<20 {
		x.t.Errorf("it had %d MiB", peak>>20)
	}
}

// A journal of a few kilobytes unpacks to one record with millions of changed objects. An agent
// that finds many of them, signed with its own key, says that they are broken and stays small.
func TestSignedJournalsOfMillionsOfChangesFillNoAgent(t *testing.T) {
	const runs, changes = 20, 2_000_000
	x := newCrashes(t)
	x.prepare("theirs")
	first := x.direct()
	x.signs()
	first.Kill()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write([]byte(`[{"at":0,"record":{"path":"s","type":"suspend","phase":"Succeeded","changed":[{}` + strings.Repeat(",{}", changes) + `]}}]`)); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	ring := keyring(x.ctx, t, x.admin)
	for i := range runs {
		cm := foreignRun(t, rand.New(rand.NewPCG(1, 2)), fmt.Sprintf("dense-%d", i)) //nolint:gosec // the same objects each time
		cm.Namespace, cm.BinaryData = "theirs", map[string][]byte{annotations.DataSteps: packed.Bytes()}
		if err := ring.Sign(cm); err != nil {
			t.Fatal(err)
		}
		if _, err := x.admin.CoreV1().ConfigMaps("theirs").Create(x.ctx, cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	x.staysSmallFor(shortly, "all of them are said to be broken", func() (bool, string) {
		events, err := x.admin.CoreV1().Events("theirs").List(x.ctx, metav1.ListOptions{FieldSelector: "reason=RunBroken"})
		if err != nil {
			return false, err.Error()
		}
		broken := map[string]bool{}
		for _, e := range events.Items {
			if strings.Contains(e.Message, "objects") {
				broken[e.InvolvedObject.Name] = true
			}
		}
		return len(broken) == runs, fmt.Sprint(len(broken), " of ", len(events.Items))
	})
}
