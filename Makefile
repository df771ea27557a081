# `make help` lists what there is to do.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# A build from source names its commit, in letters that tags of images and labels may have.
VERSION ?= $(shell git describe --tags --dirty 2>/dev/null || \
	{ commit=$$(git describe --always --dirty --abbrev=7 2>/dev/null) && echo v0.1.0-dev.g$$commit; } || echo v0.1.0-dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
# gRPC's request traces render templates, for which the linker keeps every exported method:
# 13 MB of the agent. tools/image and test/harness build with the same tag.
TAGS := grpcnotrace
# Tests, checks and binaries share what is compiled: with the folder's path in it, each package
# would be compiled once more for tests.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)
GOBUILD := CGO_ENABLED=0 go build -buildvcs=false -tags $(TAGS) -ldflags "$(LDFLAGS)"

# The version of the simulated control plane is that of tools/kube/go.mod.
# Without these flags clients cannot parse what the servers say they are.
KUBE_VERSION := $(shell awk '$$1 == "k8s.io/kubernetes" { print $$2; exit }' tools/kube/go.mod)
KUBE_PARTS := $(subst ., ,$(KUBE_VERSION:v%=%))
KUBE_VERSION_PACKAGE := k8s.io/component-base/version
KUBE_LDFLAGS := -X $(KUBE_VERSION_PACKAGE).gitVersion=$(KUBE_VERSION) \
	-X $(KUBE_VERSION_PACKAGE).gitMajor=$(word 1,$(KUBE_PARTS)) \
	-X $(KUBE_VERSION_PACKAGE).gitMinor=$(word 2,$(KUBE_PARTS))
KUBE_BINARIES := kube-apiserver kube-controller-manager kube-scheduler kubectl

# The minor version before it, of which the API server alone is built.
KUBE_BEFORE := $(shell awk '$$1 == "k8s.io/kubernetes" { print $$2; exit } $$2 == "k8s.io/kubernetes" { print $$3; exit }' tools/kube-before/go.mod)
KUBE_BEFORE_PARTS := $(subst ., ,$(KUBE_BEFORE:v%=%))
KUBE_BEFORE_LDFLAGS := -X $(KUBE_VERSION_PACKAGE).gitVersion=$(KUBE_BEFORE) \
	-X $(KUBE_VERSION_PACKAGE).gitMajor=$(word 1,$(KUBE_BEFORE_PARTS)) \
	-X $(KUBE_VERSION_PACKAGE).gitMinor=$(word 2,$(KUBE_BEFORE_PARTS))

CONTAINERD_PACKAGE := github.com/containerd/containerd/v2
CONTAINERD_VERSION := $(shell awk '$$1 == "$(CONTAINERD_PACKAGE)" { print $$2; exit }' tools/containerd/go.mod)
CONTAINERD_BINARIES := containerd containerd-shim-runc-v2 ctr

GOLANGCI_VERSION := $(shell awk '$$1 == "github.com/golangci/golangci-lint/v2" { print $$2; exit }' tools/lint/go.mod)

UNIT_PACKAGES = $$(go list ./... | grep -v /test/)
GO_DIRS = $(wildcard cmd pkg test tools plugins)

##@ Build

.PHONY: build
build: build-plugin build-agent ## Build bin/kubectl-maint and bin/agent

# test/walls builds them elsewhere.
PLUGIN ?= bin/kubectl-maint
AGENT ?= bin/agent

.PHONY: build-plugin
build-plugin:
	$(GOBUILD) -o $(PLUGIN) ./cmd/kubectl-maint

.PHONY: build-agent
build-agent:
	$(GOBUILD) -o $(AGENT) ./cmd/agent

.PHONY: image
image: ## Build the agent's image as an OCI archive, bin/agent-image.tar
	cd tools/image && GOWORK=off go run . -version $(VERSION) -o ../../bin/agent-image.tar
	cd tools/image && MAINT_IMAGE=../../bin/agent-image.tar GOWORK=off go test -count=1 -run TestTheBuiltArchive .

BUILDER ?= https://github.com/kubectl-maint/kubectl-maint/blob/main/Makefile\#dist
PLATFORMS ?=

.PHONY: dist
dist: ## Everything of a release into dist/, for all platforms: about 15 minutes; PLATFORMS=linux/amd64 makes the archive of one
	rm -rf dist bin/agents && mkdir -p dist
	cd tools/image && GOWORK=off go run . -version $(VERSION) -keep ../../bin/agents -o ../../dist/maint-agent_$(VERSION)_image.tar
	cd tools/image && MAINT_IMAGE=../../dist/maint-agent_$(VERSION)_image.tar GOWORK=off go test -count=1 -run TestTheBuiltArchive .
	cd tools/release && GOWORK=off go run . dist -version $(VERSION) -agents ../../bin/agents -builder '$(BUILDER)' -platforms '$(PLATFORMS)' -o ../../dist

.PHONY: reproduce
reproduce: ## Two clones in two folders, the second built with an empty cache, give the same bytes: for all platforms or PLATFORMS
	cd tools/image && MAINT_EMPTY_CACHE=1 GOWORK=off go test -v -count=1 -timeout 60m -run TestTwoFolders .
	cd tools/release && MAINT_EMPTY_CACHE=1 MAINT_PLATFORMS='$(or $(PLATFORMS),all)' GOWORK=off go test -v -count=1 -timeout 120m -run TestTwoFolders .

.PHONY: sign
sign: ## Sign the checksums and the provenance in dist/ (cosign, and an identity: the release workflow has one)
	cosign sign-blob --yes --bundle dist/checksums.txt.sigstore.json dist/checksums.txt
	cosign sign-blob --yes --bundle dist/provenance.intoto.json.sigstore.json dist/provenance.intoto.json

.PHONY: publish
publish: tools-helm ## Publish dist/: the release, the image and the chart (gh, skopeo, cosign; REGISTRY=…)
	@: $${REGISTRY:?say where to, as in REGISTRY=ghcr.io/somebody}
	gh release create $(VERSION) --verify-tag --generate-notes dist/*
	skopeo copy --all --digestfile dist/image-digest oci-archive:dist/maint-agent_$(VERSION)_image.tar docker://$$REGISTRY/maint-agent:$(VERSION)
	cosign sign --yes $$REGISTRY/maint-agent@$$(<dist/image-digest)
	bin/helm push dist/kubectl-maint-chart-$(VERSION:v%=%).tgz oci://$$REGISTRY/charts

##@ Test

# They begin first, so that no processor idles at the end.
LONGEST := ./test/agent ./test/nodes
# Tests on an API server wait for much of their time: three packages at once, or as many as there
# are processors.
AT_ONCE := $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 3 ? 3 : n)))
# And for the same reason four stories of a package, at least.
STORIES := $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 4 ? 4 : n)))
# Those that run under the race detector run there alone, and the walls by their own target.
UNRACED = $$(go list ./... | grep -vxF "$$(tools/race.sh --packages)" | grep -v /test/walls$$)

.PHONY: test
test: tools-kube tools-flux tools-helm ## Everything: unit tests, a real API server, the import walls, the race detector
	go test -p $(AT_ONCE) -parallel $(STORIES) -timeout 60m $(LONGEST) $(UNRACED)
	$(MAKE) --no-print-directory test-tools walls race

.PHONY: test-unit
test-unit: ## Tests that need nothing but Go
	go test $(UNIT_PACKAGES)

.PHONY: test-api
test-api: tools-kube tools-flux tools-helm ## Tests against a real API server
	go test -timeout 15m ./test/...

.PHONY: test-tools
test-tools: ## Tests of what makes the image, the schemas, the manifests and a release
	cd tools/image && GOWORK=off go test ./...
	cd tools/schemagen && GOWORK=off go test ./...
	go test ./tools/manifests
	cd tools/release && GOWORK=off go test ./...

CORE := pkg/schedule pkg/expr pkg/knob pkg/document pkg/selector pkg/policy pkg/drain pkg/intent pkg/nodes pkg/plan pkg/reference pkg/run pkg/agentconfig pkg/ledger pkg/workflow pkg/watchrule pkg/trigger pkg/calendar pkg/simulate pkg/annotations pkg/hibernate pkg/savings pkg/transition pkg/amendment pkg/connector pkg/rights pkg/lifecycle pkg/summary pkg/stuck pkg/claims pkg/offwindow pkg/outbound pkg/restoredata
# What pkg/schedule is made of.
TIME := $(filter-out %/zonegen,$(wildcard pkg/schedule/internal/*))
MUTANTS ?= 100

.PHONY: chart-test
chart-test: tools-kube tools-helm ## Lint the Helm chart, install, upgrade, roll back and uninstall it on a cluster of its own; `make test` leaves it out
	MAINT_CHART=1 go test -v -count=1 -timeout 15m ./test/packages

.PHONY: mutations
mutations: tools-kube ## Ten thousand broken objects of a tenant against a live agent; MUTATIONS=… takes another number
	MAINT_MUTATIONS=$(or $(MUTATIONS),10000) go test -v -count=1 -timeout 60m -run TestObjectsThatATenantMadeOfRealOnesHarmNobody ./test/agent

.PHONY: crashes
crashes: tools-kube ## Kill the agent at every write of the stories of runs, nodes and other clusters; `make test` takes some
	MAINT_CRASHES=all MAINT_TEST_ALL=1 go test -v -count=1 -timeout 90m -run TestAKill ./test/agent ./test/nodes

.PHONY: hibernate-crashes
hibernate-crashes: tools-kube ## Kill the agent at every write and every call of AWS of a cycle of sleep; `make test` takes some
	MAINT_CRASHES=all go test -v -count=1 -timeout 60m -run 'TestAKillAtAny|TestThePlanOfWhoever' ./test/hibernate ./test/aws

.PHONY: mutants
mutants: ## Change one operator at a time in the core, and list what its own tests do not notice; hours
	go run ./tools/mutants -n $(MUTANTS) $(CORE) $(TIME)

.PHONY: sizes
sizes: build ## How large plugin and agent are, and by what
	@du -b bin/kubectl-maint bin/agent
	@for one in kubectl-maint agent; do CGO_ENABLED=0 go build -buildvcs=false -tags $(TAGS) -o bin/symbols/$$one ./cmd/$$one; done
	@go run ./tools/sizes bin/symbols/kubectl-maint bin/symbols/agent

.PHONY: cover
cover: ratio ## Coverage of each package by its own tests
	go test -cover $(UNIT_PACKAGES) | grep -v 'no test files'

.PHONY: ratio
ratio: ## Lines of tests for each line of code
	tools/ratio.sh

.PHONY: walls
walls: ## What may import what, and what the linker keeps of the agent; never from the cache
	go test -count=1 ./test/walls

.PHONY: race
race: ## The race detector on what has goroutines (needs a C compiler)
	tools/race.sh

.PHONY: e2e-node
# tools-node first: where a node cannot run, it says so before Kubernetes is built.
e2e-node: tools-node tools-kube ## A real node with real containers: drains, Jobs, reboots (Linux, root); `make test` leaves it out
	MAINT_E2E_NODE=1 go test -count=1 -v -timeout 15m ./test/e2enode

CHAOS_FOR ?= 10m
CHAOS_SEED ?= 0

.PHONY: chaos
chaos: build tools-kube ## Two agents while everything breaks; CHAOS_FOR=2m is shorter, CHAOS_SEED=… does the same again
	$(GOBUILD) -o bin/chaos ./test/chaos
	bin/chaos --agent bin/agent --for $(CHAOS_FOR) --seed $(CHAOS_SEED)

.PHONY: monitoring-test
monitoring-test: tools-kube ## A real Prometheus scrapes a real agent, and each alert fires by a real fault; PICTURE=… keeps what the dashboard shows then; `make test` leaves it out
	MAINT_MONITORING=1 MAINT_PICTURE=$(abspath $(PICTURE)) go test -v -count=1 -timeout 10m -run TestEachAlertFiresByARealFault ./test/monitoring

.PHONY: transcripts-test
transcripts-test: tools-kube ## What the built plugin answers beside the built agent, to the letter
	go test -v -count=1 -timeout 15m ./test/transcripts

.PHONY: argocd-test
argocd-test: tools-kube tools-argocd ## Plans, policies and runs beside the real Argo CD: four minutes and the building; `make test` leaves it out
	MAINT_ARGOCD=1 go test -v -count=1 -timeout 15m ./test/argocd

.PHONY: upgrade-test
upgrade-test: tools-kube ## The version before is replaced by this one and back, in mid-work; takes the repository's history
	MAINT_UPGRADE=1 go test -v -count=1 -timeout 15m ./test/upgrade
	MAINT_UPGRADE=1 go test -v -count=1 -timeout 15m -run OlderAgent ./test/transcripts

.PHONY: chaos-mutants
chaos-mutants: tools-kube ## Put mended faults back, one by one, and see that chaos finds each; ONLY=… takes some
	$(GOBUILD) -o bin/chaos ./test/chaos
	test/chaos/mutants.sh $(ONLY)

.PHONY: demo
demo: build tools-kube ## Show it on a cluster of its own; KEEP=1 leaves it running, CLUSTER=… chooses one
	$(GOBUILD) -o bin/demo ./test/demo
	bin/demo $(if $(KEEP),--keep) $(if $(CLUSTER),--cluster=$(CLUSTER))

.PHONY: demo-before
demo-before: build tools-kube-before ## The same on an API server of the minor version before, which is built first: 10 minutes
	$(GOBUILD) -o bin/demo ./test/demo
	MAINT_ASSETS=bin/before bin/demo

.PHONY: demo-hibernate
demo-hibernate: build tools-kube tools-moto ## Show a night of two minutes: an application, a database and machines of a simulated AWS sleep and wake
	$(GOBUILD) -o bin/demo ./test/demo
	bin/demo --story night

.PHONY: bench
bench: bench-time bench-cluster ## Benchmarks: time beside other libraries, plans beside CronJobs

.PHONY: bench-time
bench-time: ## Time alone, beside robfig/cron and rrule-go
	go test -run '^$$' -bench . -benchmem -benchtime 0.3s ./pkg/schedule

.PHONY: bench-cluster
bench-cluster: build tools-kube ## Many plans due at once beside CronJobs, on a cluster of their own
	go run ./test/bench

.PHONY: look-terminal
look-terminal: build ## The live view of the cluster of KUBECONFIG in tmux at several sizes, into test/look/testdata: to be looked at
	PATH="$(CURDIR)/bin:$$PATH" tools/look-terminal.sh

##@ Check

.PHONY: lint
lint: tools-lint ## golangci-lint and gofumpt
	bin/golangci-lint run ./...
	@unformatted=$$(bin/gofumpt -l $(GO_DIRS)); \
	if [[ -n $$unformatted ]]; then \
		printf 'not formatted (run bin/gofumpt -w on them):\n%s\n' "$$unformatted" >&2; exit 1; \
	fi

.PHONY: vet
vet: ## go vet
	go vet ./...

# A week of some of the examples, as README shows it; one of them waits for a policy, as in its step 6.
CALENDAR = sed '/^    spec:/a\      policies: [{name: weekends}]' examples/nightly-restart.yaml | \
	go run ./cmd/kubectl-maint calendar -o svg --timezone Europe/Berlin --from 2026-03-09 --to 2026-03-16 -f - \
	$(patsubst %,-f examples/%.yaml,weekends orders-weekly database-backup dev-namespace-sleeps)

.PHONY: generate
generate: ## Write what is generated: docs/schemas, manifests/, README's calendar and the Go of the .proto files
	cd tools/schemagen && GOWORK=off go run . -o ../../docs/schemas
	go run ./tools/manifests -o manifests
	$(CALENDAR) > docs/calendar.svg
	cd tools/protogen && GOWORK=off go run . -o ../..

.PHONY: verify-generated
verify-generated: ## Fail when something is not what `make generate` writes
	@fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	(cd tools/schemagen && GOWORK=off go run . -o "$$fresh/docs/schemas"); \
	go run ./tools/manifests -o "$$fresh/manifests"; \
	(cd tools/protogen && GOWORK=off go run . -o "$$fresh"); \
	$(CALENDAR) | diff docs/calendar.svg - || { echo "docs/calendar.svg is stale: run make generate" >&2; exit 1; }; \
	diff -r docs/schemas "$$fresh/docs/schemas" || { echo "docs/schemas is stale: run make generate" >&2; exit 1; }; \
	(cd "$$fresh" && find pkg manifests -type f) | while read -r file; do \
		diff "$$file" "$$fresh/$$file" || { echo "$$file is stale: run make generate" >&2; exit 1; }; \
	done

.PHONY: monitoring-check
monitoring-check: tools-promtool ## promtool over the rules and their tests
	promtool check rules manifests/monitoring/rules.yaml
	promtool test rules manifests/monitoring/tests/*.yaml

.PHONY: workflows-lint
workflows-lint: ## Check .github/workflows by actionlint
	@tools/build.sh actionlint actionlint github.com/rhysd/actionlint/cmd/actionlint
	bin/actionlint -color=false

.PHONY: manifests-check
manifests-check: tools-kubeconform ## Check manifests/ and examples/ against the schemas of Kubernetes
	tools/manifests-check.sh

##@ Tools (pinned in tools/*/go.mod, built once into bin/)

.PHONY: tools-kube
tools-kube: ## etcd, the control plane, kubectl, kwok: about 10 minutes the first time on two cores
	@tools/build.sh kube etcd go.etcd.io/etcd/server/v3
	@for binary in $(KUBE_BINARIES); do \
		tools/build.sh kube $$binary k8s.io/kubernetes/cmd/$$binary "$(KUBE_LDFLAGS)"; \
	done
	@for binary in kwok kwokctl; do tools/build.sh kwok $$binary sigs.k8s.io/kwok/cmd/$$binary; done

.PHONY: tools-kube-before
tools-kube-before: tools-kube ## The API server of the minor version before, with the rest of this one, in bin/before
	@tools/build.sh kube-before kube-apiserver-before k8s.io/kubernetes/cmd/kube-apiserver "$(KUBE_BEFORE_LDFLAGS)"
	@mkdir -p bin/before
	@for binary in etcd kube-controller-manager kube-scheduler kubectl kwok kwokctl; do ln -sf ../$$binary bin/before/$$binary; done
	@ln -sf ../kube-apiserver-before bin/before/kube-apiserver

.PHONY: tools-kubelet
tools-kubelet: ## kubelet and kube-proxy, for a real node (Linux, root)
	@for binary in kubelet kube-proxy; do \
		tools/build.sh kube $$binary k8s.io/kubernetes/cmd/$$binary "$(KUBE_LDFLAGS)"; \
	done

.PHONY: tools-helm
tools-helm: ## helm, which renders and installs the chart in tests: about 5 minutes the first time
	@tools/build.sh helm helm helm.sh/helm/v4/cmd/helm

.PHONY: tools-flux
tools-flux: ## kustomize-controller and helm-controller of Flux, beside which test/gitops runs: about 6 minutes the first time
	@tools/build.sh flux kustomize-controller github.com/fluxcd/kustomize-controller
	@tools/build.sh helm-controller helm-controller github.com/fluxcd/helm-controller

.PHONY: tools-argocd
tools-argocd: ## Application controller and repository server of Argo CD, for argocd-test: about 5 minutes the first time, after tools-kube
	@tools/build.sh argocd argocd .

# What a real node is made of. runc and the CNI plugins are Debian's.
.PHONY: tools-node
tools-node: ## kubelet, containerd, runc, for a real node (Linux, root): about 3 minutes the first time
	@tools/node-packages.sh
	@tools/build.sh kube kubelet k8s.io/kubernetes/cmd/kubelet "$(KUBE_LDFLAGS)"
	@for binary in $(CONTAINERD_BINARIES); do \
		tools/build.sh containerd $$binary $(CONTAINERD_PACKAGE)/cmd/$$binary "-X $(CONTAINERD_PACKAGE)/version.Version=$(CONTAINERD_VERSION)"; \
	done

.PHONY: tools-promtool
tools-promtool: ## promtool of Debian's prometheus, unless one is on PATH
	@tools/promtool.sh

.PHONY: tools-moto
tools-moto: ## A simulated AWS (moto_server, in Python), unless one is on PATH
	@tools/moto.sh

.PHONY: tools-lint
tools-lint: tools-kubeconform ## golangci-lint, gofumpt, kubeconform: about 3 minutes the first time
	@tools/build.sh lint gofumpt mvdan.cc/gofumpt
	@tools/build.sh lint golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint "-X main.version=$(GOLANGCI_VERSION:v%=%)"

# Not a file: build.sh knows whether there is something to do.
.PHONY: tools-kubeconform
tools-kubeconform:
	@tools/build.sh lint kubeconform github.com/yannh/kubeconform/cmd/kubeconform

.PHONY: clean
clean: ## Remove what was built; the tools too, which take ten minutes to come back
	rm -rf bin dist

.PHONY: help
help: ## This list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z][a-z0-9-]*:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
