package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhereAnAgentActs(t *testing.T) {
	all, shop := Agent{Namespace: "ops"}, Agent{Namespace: "ops", Watches: "shop", Widened: "'install'"}
	silent := Agent{Namespace: "ops", Watches: "shop", Missing: "it is silent"}
	everywhere, away := shop, shop
	everywhere.Others = "the agent in namespace ops watches only namespace shop, and nothing acts in the others: it watches all after 'install'"
	away.Elsewhere, away.Missing = true, "the agent in namespace ops watches only namespace shop, and nothing acts in namespace team: it watches all after 'install'"
	for name, c := range map[string]struct{ got, want Agent }{
		"one that watches all acts in each":             {all.In("team"), all},
		"one that watches one acts there":               {shop.In("shop"), shop},
		"and not in another":                            {shop.In("team"), away},
		"of all namespaces the others are named":        {shop.In(""), everywhere},
		"what was asked elsewhere does not count":       {away.In("shop"), shop},
		"what was asked of all does not count of one":   {everywhere.In("team"), away},
		"one that is silent acts nowhere":               {silent.In("shop"), silent},
		"one that is silent is only silent, everywhere": {silent.In(""), silent},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
