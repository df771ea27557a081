package install_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// policies are the objects that --with-admission adds, by kind and name, and which of
// them are there.
func (l *lab) policies() (want, have []string) {
	l.Helper()
	without := map[string]bool{}
	for _, u := range l.printedObjects(l.maint(thisVersion, "install").out) {
		without[u.GetKind()+"/"+u.GetName()] = true
	}
	for _, u := range l.printedObjects(l.maint(thisVersion, "install", "--with-admission").out) {
		name := u.GetKind() + "/" + u.GetName()
		if without[name] {
			continue
		}
		want = append(want, name)
		if l.get(u.GetKind(), u.GetName()) != nil {
			have = append(have, name)
		}
	}
	return want, have
}

// there says that all of the policies are there, or none.
func (l *lab) there(all bool, when string) {
	l.Helper()
	want, have := l.policies()
	if !all {
		want = nil
	}
	if !slices.Equal(want, have) {
		l.Errorf("%s: %v are there, want %v", when, have, want)
	}
}

func TestThePoliciesComeByAFlagStayAndGoByTheFlag(t *testing.T) {
	l := newLab(t)
	l.Cleanup(func() { l.maint(thisVersion, "install", "--apply", "--with-admission=false") })
	l.install(thisVersion)
	l.there(false, "without the flag")
	l.install(thisVersion, "--with-admission")
	l.there(true, "with the flag")
	l.changesNothing(thisVersion)

	l.edit("kubectl-edit", "ValidatingAdmissionPolicyBinding", "maint-intents", `{"spec":{"validationActions":["Audit"]}}`)
	l.remove("ValidatingAdmissionPolicyBinding", "maint-nodes")
	l.install(nextVersion, "--without", "force")
	l.there(true, "after an upgrade that leaves something else out")
	actions, _, err := unstructured.NestedStringSlice(l.get("ValidatingAdmissionPolicyBinding", "maint-intents").Object, "spec", "validationActions")
	l.must(err)
	if !slices.Equal(actions, []string{"Audit"}) {
		t.Errorf("an admin had the policy only tell of what it would refuse; after the upgrade it is to %v", actions)
	}

	out := l.install(nextVersion, "--with-admission=false")
	l.there(false, "with the flag turned off")
	if !strings.Contains(out, "validatingadmissionpolicy/maint-intents deleted\n") || l.get("ValidatingAdmissionPolicy", "maint-agent-configmaps") == nil {
		t.Errorf("it deletes something else, or does not tell:\n%s", out)
	}
	l.install(nextVersion)
	l.there(false, "after another upgrade")

	l.install(nextVersion, "--with-admission")
	for _, mode := range []string{"client", "server"} {
		p := l.maint(nextVersion, "uninstall", "--dry-run="+mode)
		mark := map[string]string{"client": " deleted (dry run)\n", "server": " deleted (server dry run)\n"}[mode]
		if p.code != 0 || !strings.Contains(p.out, "validatingadmissionpolicy/maint-intents"+mark) {
			t.Errorf("uninstall --dry-run=%s exits %d: %s%s", mode, p.code, p.out, p.err)
		}
		l.there(true, "after a dry run of uninstall")
	}
	if p := l.maint(nextVersion, "uninstall", "--read-only"); p.code != 0 || !strings.Contains(p.out, "kind: ValidatingAdmissionPolicy\n") || !strings.Contains(p.err, "nothing was removed: ") {
		t.Errorf("uninstall exits %d: %s%s", p.code, p.out, p.err)
	}
	if p := l.maint(nextVersion, "uninstall", "--apply"); p.code != 2 || p.out != "" {
		t.Errorf("uninstall --apply, which nobody can be asked about, exits %d: %s%s", p.code, p.out, p.err)
	}
	l.there(true, "after uninstall has printed what it would remove")
	if p := l.maint(nextVersion, "uninstall", "--apply", "--yes"); p.code != 0 {
		t.Fatalf("uninstall exits %d: %s%s", p.code, p.out, p.err)
	}
	l.there(false, "after uninstall")
}
