package look

import (
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// orphans are HibernatePlans that are gone while something of them sleeps.
func (o *statusOptions) orphans(r reads) []held {
	var out []held
	for _, one := range view.Orphans(r.restores, r.sleepers) {
		name, say := one.Of(), o.printer(o.Zone, one.Object.Namespace).Suggest()
		remedy := say.ShowRestore(name)
		if one.Fault != "" {
			remedy = say.Adopt(one.Object.Name)
		}
		if o.everywhere {
			name = one.Object.Namespace + "/" + name
		}
		out = append(out, held{needs: []print.Need{{About: name, What: "is deleted, with restore data in configmap/" + one.Object.Name + ": " + one.PlanGone(), Remedy: remedy}}})
	}
	return out
}
