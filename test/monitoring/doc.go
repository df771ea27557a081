// Package monitoring holds rules, runbooks and dashboard of manifests/monitoring together,
// and, where it is asked to (`make monitoring-test`, which sets MAINT_MONITORING=1), shows
// each of them to a real Prometheus that scrapes a real agent. Asked, it never skips.
package monitoring
