package metrics

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/savings"
	"github.com/kubectl-maint/kubectl-maint/pkg/transition"
)

func seconds(at *time.Time) string {
	return strconv.FormatFloat(float64(at.Unix()), 'g', -1, 64)
}

// troubled has something wrong with one object of each kind, five minutes after the
// beginning of the tests' time.
func troubled(leads bool) Troubles {
	shop := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: name} }
	return Troubles{
		Leading: func() bool { return leads },
		Plans: func() map[types.NamespacedName]ledger.Trouble {
			return map[types.NamespacedName]ledger.Trouble{shop("nightly"): {Missed: instant(), Failed: *later(time.Minute), NotBack: 2}}
		},
		Hibernations: func() map[types.NamespacedName]transition.Trouble {
			return map[types.NamespacedName]transition.Trouble{shop("nights"): {Overdue: instant(), NotBack: 1}}
		},
		Slept: func() []savings.Sleep {
			return []savings.Sleep{{Namespace: "shop", Plan: "nights", Slept: []ledger.Slept{{Target: "apps", Executor: "workload", Kind: "Deployment", Hours: 1}}}}
		},
		Drains: func() []BlockedDrain { return []BlockedDrain{{Namespace: "shop", Plan: "nightly", Node: "n2"}} },
		Gates:  func() map[types.NamespacedName]bool { return map[types.NamespacedName]bool{shop("hours"): false} },
		Now:    func() time.Time { return *later(5 * time.Minute) },
	}
}

// Two replicas are scraped, and only the one that leads looks at all objects.
func TestOnlyTheLeaderTellsWhatIsWrong(t *testing.T) {
	m := everything()
	m.CountTroubles(troubled(false))
	for series := range scrape(t, m) {
		if strings.Contains(series, `namespace="shop"`) {
			t.Errorf("a standby says %s", series)
		}
	}
}

func TestWhatIsMendedIsToldNoMore(t *testing.T) {
	m := New("v1")
	well := troubled(true)
	well.Plans = func() map[types.NamespacedName]ledger.Trouble { return nil }
	well.Hibernations = func() map[types.NamespacedName]transition.Trouble { return nil }
	well.Slept = func() []savings.Sleep { return nil }
	well.Drains = func() []BlockedDrain { return nil }
	well.Gates = func() map[types.NamespacedName]bool {
		return map[types.NamespacedName]bool{{Namespace: "shop", Name: "hours"}: true}
	}
	m.CountTroubles(well)
	m.DrainsBlocked([]BlockedDrain{{Node: "n1"}})
	m.DrainsBlocked(nil)
	got := scrape(t, m)
	for series, value := range got {
		if strings.Contains(series, `namespace="`) && series != `maint_policy_enforced{namespace="shop",object="hours"}` {
			t.Errorf("%s %s", series, value)
		}
	}
	if got[`maint_policy_enforced{namespace="shop",object="hours"}`] != "1" {
		t.Error("gates that hold do not count as enforced")
	}
}

func TestCertificatesAreRememberedForAWhileAndNotWithoutEnd(t *testing.T) {
	m, now := New("v1"), instant()
	calls := troubled(true)
	calls.Now = func() time.Time { return now }
	m.CountTroubles(calls)
	count := func() int {
		n := 0
		for series := range scrape(t, m) {
			if strings.HasPrefix(series, "maint_function_certificate") {
				n++
			}
		}
		return n
	}
	for i := range mostCertificates + 5 {
		m.CertificateSeen(executors.Certificate{Namespace: "shop", Endpoint: fmt.Sprint(i), Side: executors.ServerSide}, *later(time.Hour))
		now = now.Add(time.Second)
	}
	if n := count(); n != mostCertificates {
		t.Errorf("%d certificates are remembered, want %d", n, mostCertificates)
	}
	if _, kept := scrape(t, m)[`maint_function_certificate_expiry_timestamp_seconds{endpoint="4",namespace="shop",side="server"}`]; kept {
		t.Error("the one that was not seen for longest is still there")
	}
	m.CertificateSeen(executors.Certificate{Namespace: "shop", Endpoint: "504", Side: executors.ServerSide}, *later(9 * time.Hour))
	if got := scrape(t, m)[`maint_function_certificate_expiry_timestamp_seconds{endpoint="504",namespace="shop",side="server"}`]; got != seconds(later(9*time.Hour)) {
		t.Errorf("a certificate that was renewed ends at %s", got)
	}
	now = now.Add(certificateKept + time.Minute)
	if n := count(); n != 0 {
		t.Errorf("%d certificates are remembered that nobody used for more than a month", n)
	}
}

// The endpoint of a function may come from an expression: a plan that calls another one each time
// pushes out its own certificates, and not those that others have alerts on.
func TestCertificatesOfOneNamespacePushOutNoOthers(t *testing.T) {
	m, now := New("v1"), instant()
	calls := troubled(true)
	calls.Now = func() time.Time { return now }
	m.CountTroubles(calls)
	m.CertificateSeen(executors.Certificate{Namespace: "bank", Endpoint: "backup:9443", Side: executors.ServerSide}, *later(time.Hour))
	for i := range 2 * mostCertificates {
		now = now.Add(time.Second)
		m.CertificateSeen(executors.Certificate{Namespace: "shop", Endpoint: fmt.Sprint(i), Side: executors.ServerSide}, *later(time.Hour))
	}
	if _, kept := scrape(t, m)[`maint_function_certificate_expiry_timestamp_seconds{endpoint="backup:9443",namespace="bank",side="server"}`]; !kept {
		t.Error("another namespace pushed it out")
	}
}
