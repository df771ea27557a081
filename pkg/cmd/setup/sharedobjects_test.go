package setup

import (
	"slices"
	"testing"
)

// A second installation took the bindings over, and the policies still name the first.
func TestWhatAnotherAgentNeedsStays(t *testing.T) {
	first, second := released(), released()
	second.Namespace = "shop"
	all, err := first.all()
	if err != nil {
		t.Fatal(err)
	}
	others, err := second.all()
	if err != nil {
		t.Fatal(err)
	}
	live := byKey(all)
	binding := objectKey{"ClusterRoleBinding", "maint-agent"}
	live[binding] = byKey(others)[binding]
	of := map[string]map[objectKey]bool{"maint-system": sharedWith(live, "maint-system"), "shop": sharedWith(live, "shop")}
	for _, c := range []struct {
		key        objectKey
		keptOfHome bool // when the first goes
		keptOfShop bool // when the second goes
	}{
		{key: binding, keptOfHome: true},
		{key: objectKey{"ClusterRole", "maint-agent"}, keptOfHome: true, keptOfShop: true},
		{key: objectKey{"ClusterRoleBinding", "maint-agent-drains"}, keptOfShop: true},
		{key: objectKey{"ValidatingAdmissionPolicy", "maint-agent-nodes"}, keptOfShop: true},
		{key: objectKey{"ValidatingAdmissionPolicyBinding", "maint-agent-nodes"}, keptOfShop: true},
		{key: objectKey{"ValidatingAdmissionPolicy", "maint-intents"}, keptOfShop: true},
		{key: objectKey{"ValidatingAdmissionPolicy", "maint-agent-kubelets"}, keptOfHome: true, keptOfShop: true},
	} {
		if live[c.key] == nil {
			t.Errorf("there is no %s", c.key)
		}
		if home, shop := of["maint-system"][c.key], of["shop"][c.key]; home != c.keptOfHome || shop != c.keptOfShop {
			t.Errorf("%s stays when the first goes: %t, when the second goes: %t", c.key, home, shop)
		}
	}
	if names := objectNames(of["shop"]); !slices.IsSorted(names) || len(names) != len(of["shop"]) {
		t.Errorf("%v", names)
	}
}
