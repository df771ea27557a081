package harness

import "fmt"

// Repository is what a repository of Git holds at one of its commits: an application, its plans
// and their policy, by the names of files. A commit changes the application; the plans are as
// they were. notes are lines of annotations that plans have, each with its end; rules are further
// ones of the plans' account, written as the first is.
func Repository(commit int, notes, rules string) map[string]string {
	plan := func(name, spec string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  labels: {maint.dev/kind: plan}\n" + notes + "data:\n  plan.yaml: |\n    apiVersion: maint.dev/v1alpha1\n    kind: Plan\n    spec:\n" + spec
	}
	const down = `      target: {apiVersion: apps/v1, kind: Deployment, name: orders}
      steps:
      - {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0, restoreAfter: true}}
      - {name: hold, type: suspend}
`
	return map[string]string{
		"orders.yaml": fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: orders, annotations: {example.com/commit: '%d'}}\nspec:\n  replicas: 3\n  selector: {matchLabels: {app: orders}}\n"+
			"  template:\n    metadata: {labels: {app: orders}}\n    spec: {containers: [{name: orders, image: 'registry.example/orders:1'}]}\n", commit),
		"nightly.yaml": plan("nightly", "      triggers: {schedules: [{cron: '0 2 * * *'}]}\n      policies: [{name: windows}]\n      steps: [{name: hold, type: suspend}]\n"),
		"plain.yaml":   plan("plain", down),
		"upgrade.yaml": plan("upgrade", "      holdOwners: true\n"+down),
		"windows.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: windows\n  labels: {maint.dev/kind: policy}\ndata:\n  policy.yaml: |\n    apiVersion: maint.dev/v1alpha1\n    kind: Policy\n    spec: {strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{start: '01:00', end: '05:00'}]}}\n",
		"rbac.yaml": `apiVersion: v1
kind: ServiceAccount
metadata: {name: maint-runner}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: maint-runner}
rules:
- {apiGroups: [apps], resources: [deployments, deployments/scale], verbs: [get, list, watch, patch]}
` + rules + `---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: maint-runner}
subjects: [{kind: ServiceAccount, name: maint-runner}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: maint-runner}
`,
	}
}
