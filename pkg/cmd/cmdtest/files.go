package cmdtest

import (
	"strings"
)

// PolicyOf is a policy's manifest; notes are its annotations, spec is written
// as one line of YAML.
func PolicyOf(name, notes, spec string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop, labels: {maint.dev/kind: policy}, annotations: {" + notes + "}}\n" +
		"data:\n  policy.yaml: |\n    {apiVersion: maint.dev/v1alpha1, kind: Policy, spec: " + spec + "}\n"
}

// PlanOf is the manifest of a plan with annotations and a spec in YAML.
func PlanOf(name, notes, spec string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop, labels: {maint.dev/kind: plan}, annotations: {" + notes + "}}\n" +
		"data:\n  plan.yaml: |\n    {apiVersion: maint.dev/v1alpha1, kind: Plan, spec: {steps: [{name: hold, type: suspend}], " + spec + "}}\n"
}

// SleeperOf is the manifest of a HibernatePlan with annotations and a spec in YAML, and with a
// target of type noop.
func SleeperOf(name, notes, spec string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop, labels: {maint.dev/kind: hibernate-plan}, annotations: {" + notes + "}}\n" +
		"data:\n  plan.yaml: |\n    {apiVersion: maint.dev/v1alpha1, kind: HibernatePlan, spec: {targets: [{name: apps, type: noop}], " + spec + "}}\n"
}

// Manifest is a plan's ConfigMap; edits are pairs of an old and a new text.
func Manifest(edits ...string) string {
	text := `apiVersion: v1
kind: ConfigMap
metadata:
  name: nightly
  labels:
    maint.dev/kind: plan
data:
  plan.yaml: |
    apiVersion: maint.dev/v1alpha1
    kind: Plan
    spec:
      steps:
      - name: hold
        type: suspend
`
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			panic("the manifest holds no " + edits[i])
		}
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	return text
}

// SimulatedWorld is a plan in a namespace of its own, with a window from 22:00 to
// 02:00 in Berlin, and one beside it that has none.
const SimulatedWorld = `apiVersion: v1
kind: ConfigMap
metadata:
  name: orders
  namespace: shop
  labels:
    maint.dev/kind: plan
data:
  plan.yaml: |
    apiVersion: maint.dev/v1alpha1
    kind: Plan
    spec:
      policies:
      - name: night
      triggers:
        schedules:
        - cron: "0 21,23 * * *"
          timezone: Europe/Berlin
        - cron: "0 7 * * *"
      startDeadline: 90m
      steps:
      - name: hold
        type: suspend
        properties:
          duration: 20m
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: night
  namespace: shop
  labels:
    maint.dev/kind: policy
data:
  policy.yaml: |
    apiVersion: maint.dev/v1alpha1
    kind: Policy
    spec:
      strategy: MaintenanceSchedule
      maintenanceSchedule:
        timezone: Europe/Berlin
        windows:
        - start: "22:00"
          end: "02:00"
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: reports
  labels:
    maint.dev/kind: plan
data:
  plan.yaml: |
    apiVersion: maint.dev/v1alpha1
    kind: Plan
    spec:
      triggers:
        onCreate: true
        schedules:
        - cron: "0 */8 * * *"
      maxDuration: 9h
      steps:
      - name: hold
        type: suspend
`

// StepTemplate is a step template's ConfigMap; edits are as manifest's.
func StepTemplate(edits ...string) string {
	text := `apiVersion: v1
kind: ConfigMap
metadata:
  name: hush
  labels:
    maint.dev/kind: step-template
data:
  step.yaml: |
    apiVersion: maint.dev/v1alpha1
    kind: StepTemplate
    spec:
      parameters:
      - name: long
        required: true
      steps:
      - name: hold
        type: suspend
        properties:
          duration: ${params.long}
`
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			panic("the template holds no " + edits[i])
		}
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	return text
}

// Using is a plan with a step of the template.
func Using(properties string, edits ...string) string {
	return Manifest(append([]string{"type: suspend\n", "type: template/hush\n        properties: {" + properties + "}\n"}, edits...)...)
}
