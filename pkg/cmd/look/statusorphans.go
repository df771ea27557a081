package look

import (
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// orphans are HibernatePlans that are gone while something of them sleeps, plans that are gone
// while a run of them lives, and policies that are gone while their gates are not all open.
func (o *statusOptions) orphans(k *factory.Cluster, r reads) []held {
	out := append(o.runsWithoutPlan(r), o.gatesWithoutPolicy(k, r)...)
	for _, one := range view.Orphans(r.restores, r.sleepers) {
		needs := o.orphanNeeds(one)
		out = append(out, held{needs, print.Value{Kind: print.KindRestoreStatus, Name: "configmap/" + one.Object.Name, Body: print.RestoreValue(one, needs)}})
	}
	return out
}

// runsWithoutPlan are live runs whose plan was deleted: the agent ends them.
func (o *statusOptions) runsWithoutPlan(r reads) []held {
	if o.selector != "" { // a selector selects plans
		return nil
	}
	there, names := map[string]bool{}, map[string]bool{}
	for _, cm := range r.plans {
		there[string(cm.UID)], names[cm.Namespace+"/"+cm.Name] = true, true
	}
	var out []held
	for _, one := range r.runs {
		if there[one.Run.PlanUID] {
			continue
		}
		v, what := o.printer(o.Zone, one.Run.Namespace), "is deleted"
		if names[one.Run.Namespace+"/"+one.Run.Plan] {
			what = "had an earlier plan of its name, which was deleted"
		}
		need := print.Need{About: o.about(one.Run.Namespace, one.Run.Plan), What: what + ": the agent ends its run " + one.Run.Name + " with its restore and finally; it is " + v.RunHead(one), Remedy: v.Suggest().StatusOf(one.Run.Name)}
		out = append(out, held{[]print.Need{need}, runValue(print.RunValue(one, need))})
	}
	return out
}

// gatesWithoutPolicy are gates of policies that somebody deleted: the agent opens what they hold.
func (o *statusOptions) gatesWithoutPolicy(k *factory.Cluster, r reads) []held {
	var out []held
	for _, one := range r.around.GatesWithoutPolicy() {
		namespace := one.Object.Namespace
		if o.selector != "" || !o.everywhere && namespace != k.Namespace {
			continue
		}
		say := o.printer(o.Zone, namespace).Suggest()
		remedy := say.Why("policy/" + one.Policy)
		if one.Fault != "" {
			remedy = say.Adopt(one.Object.Name)
		}
		out = append(out, heldPolicy(namespace, one.Policy, print.Need{About: "policy " + o.about(namespace, one.Policy), What: one.PolicyGone(), Remedy: remedy}))
	}
	return out
}

func (o *statusOptions) orphanNeeds(one view.Restore) []print.Need {
	name, say := one.Of(), o.printer(o.Zone, one.Object.Namespace).Suggest()
	remedy := say.ShowRestore(name)
	if one.Fault != "" {
		remedy = say.Adopt(one.Object.Name)
	}
	return []print.Need{{About: o.about(one.Object.Namespace, name), What: "is deleted, with restore data in configmap/" + one.Object.Name + ": " + one.PlanGone(), Remedy: remedy}}
}
