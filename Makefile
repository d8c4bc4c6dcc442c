# `make` lists what there is. Needed: Go 1.26, Git and make; everything else is built from pinned Go modules.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# `make run` and the tests end their own clusters; make only has to let them.
.DELETE_ON_ERROR:

export GOTOOLCHAIN := local
# Static binaries everywhere: no C compiler is needed, and all builds share one cache of compiled packages.
export CGO_ENABLED := 0

BIN     := $(CURDIR)/.build/bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
STAMP   := -X github.com/kubeop/kubeop/internal/version.Version=$(VERSION) -X github.com/kubeop/kubeop/internal/version.Commit=$(COMMIT)
GO      := go build -trimpath
CRDS    := charts/kubeop/crds
# The folders whose structure is held by hack/measure.
CODE    := api cmd controllers delivery gitops internal
# Extra flags of every `go test`, for example TESTFLAGS='-v -run Quota'.
TESTFLAGS ?=
FUZZTIME  ?= 20s
# RACE=1 runs the tests with Go's race detector, which needs a C compiler and takes about five times as long; -short leaves out what measures
# confined processes, in which it cannot run.
RACE ?=
# The packages whose tests `make test` runs.
PACKAGES ?= ./...
# Those of `make race`: no API server, and memory that goroutines share.
RACE_PACKAGES := $(addprefix ./,controllers/app/... controllers/refusal controllers/step controllers/usage delivery/build/... delivery/fair \
  delivery/fetch/cache delivery/fetch/disk delivery/fetch/git delivery/fetch/keymutex delivery/fetch/pool delivery/fetch/singleflight delivery/journal delivery/lru \
  delivery/release/charts delivery/release/pool delivery/trials gitops/... internal/...)
# Flags of `make bench` and `make bench-scale`, for example BENCHFLAGS='-n 500 -json out.json'; BENCHFLAGS=-help lists them.
BENCHFLAGS ?=
# What `make run` and the tests need: the cluster binary, with helm, operator and hello beside it.
export KUBEOP_CLUSTER_BIN := $(BIN)/cluster
STAGE := $(addprefix $(BIN)/,cluster helm) build

GITEA        := v1.26.0
ALERTMANAGER := v0.28.1
YAML_SERVER  := 2.0.0
K8S_MINOR    := 37
HELM_LDFLAGS := -s -w -X helm.sh/helm/v3/internal/version.version=v3.22.0 \
  $(foreach p,pkg/chartutil pkg/lint/rules,-X helm.sh/helm/v3/$p.k8sVersionMajor=1 -X helm.sh/helm/v3/$p.k8sVersionMinor=$(K8S_MINOR))

##@ Every day
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: prerequisites $(STAGE) ## bring everything up on nothing and ship an app by git push; ONCE=1 ends after the tour
	@$(GO) -o $(BIN)/run ./hack/run && exec $(BIN)/run

run-clean: ## remove what an interrupted `make run` left
	@[ ! -x $(BIN)/cluster ] || $(BIN)/cluster down --dir .build/run/cluster
	@rm -rf .build/run

build: prerequisites ## build the operator, the program that decrypts for it, the manager, the command line, and the sample application
	$(GO) -ldflags "-s -w $(STAMP)" -o $(BIN)/operator ./cmd/operator
	$(GO) -ldflags "-s -w" -o $(BIN)/decrypt ./cmd/decrypt
	$(GO) -ldflags "-s -w $(STAMP)" -o $(BIN)/manager ./cmd/manager
	$(GO) -ldflags "-s -w $(STAMP)" -o $(BIN)/kubeop ./cmd/kubeop
	$(GO) -ldflags "-s -w" -o $(BIN)/hello ./e2e/hello

# The client of the management API, made of its document.
CLIENT := $(BIN)/oapi-codegen -config api/client/codegen.yaml
generate: $(BIN)/controller-gen $(BIN)/oapi-codegen ## write the deepcopy functions and the CRDs from api/, and the document and the client of the management API from its operations
	$(BIN)/controller-gen object crd paths=./api/v1alpha1/... output:crd:dir=$(CRDS)
	go test -trimpath -count 1 -run TestTheDocumentOfTheAPI ./internal/manager/api -update
	$(CLIENT) -o api/client/zz_generated.client.go docs/api/openapi.json

##@ Before a commit
test: prerequisites curl postgresql $(addprefix $(BIN)/,cluster helm) $(if $(RACE),compiler) ## run the unit, fuzz-seed and integration tests against a real API server; RACE=1 with the race detector
	$(if $(RACE),CGO_ENABLED=1 go test -race -short -timeout 60m,go test -timeout 40m) -trimpath $(TESTFLAGS) $(PACKAGES)
	$(if $(RACE),,go test -C e2e/cluster -trimpath $(TESTFLAGS) ./...)

race: prerequisites compiler postgresql ## run the tests of what goroutines share with the race detector, which is the part of `make test RACE=1` that CI has time for
	CGO_ENABLED=1 go test -race -short -trimpath -timeout 20m $(TESTFLAGS) $(RACE_PACKAGES)

e2e: prerequisites $(STAGE) ## run the user stories, the accidents, charts of all kinds and the checks of benchmarks for tenancy on clusters of their own, the operator installed by its chart
	go test -trimpath -tags e2e -count 1 -p 1 -timeout 30m $(TESTFLAGS) ./e2e ./e2e/accidents ./e2e/charts ./e2e/tenancy

# Parts of the names of the tests that use admission policies, which run against older Kubernetes. A test of the controllers says which one is missing here.
GUARD_TESTS := Polic|Guard|Reports|Frozen|Stopped|Host|HoldsTenants|PodsRunWhere|ClaimsAreJudged|ClaimsAreNotLed|PodsMount|Drained|OnlySigned|Restricted|RefusedPod|TheOperator|Connect|PastGit|TooLarge|OnPurpose|OfThePlatform$$|PlatformRepository$$|RefusesOfABranch|VolumesAreSafe|DeeplyNested|PriorityClasses|EventsOfAnApp|TheirAnnotations|AsTheAPIServer|ControlPlane|CloudControllers|HomeNamespace|OwnersMayDo|GracePeriods|IsJudged|NotFromGit|LongLists|RolesOfApps|IsBounded
VERSIONS    ?= 1.34 1.35 1.36
versions: prerequisites $(addprefix $(BIN)/,cluster helm) ## run the tests of guardrails on API servers that have the APIs and features of older Kubernetes; VERSIONS="1.34" on one
	for v in $(VERSIONS); do KUBERNETES=$$v go test -trimpath -count 1 -timeout 20m $(TESTFLAGS) -run '$(GUARD_TESTS)' ./controllers || exit; done

attack: prerequisites $(STAGE) ## have tenants attack a platform while another works; ATTACK=full each by itself, ATTACK_ROWS=charts some
	go test -trimpath -tags e2e -count 1 -p 1 -v -timeout 60m $(TESTFLAGS) ./e2e/attack/...

gitea: prerequisites compiler ## build a Gitea from its Go module, which takes ten minutes the first time, and try the client of Git hosts on it
	@rm -rf .build/gitea && mkdir -p .build/gitea && cp -r "$$(go mod download -json code.gitea.io/gitea@$(GITEA) | sed -n 's/.*"Dir": "\(.*\)",/\1/p')" .build/gitea/src && chmod -R u+w .build/gitea/src
	cd .build/gitea/src && CGO_ENABLED=1 go build -trimpath -tags "sqlite sqlite_unlock_notify" -o ../gitea .
	KUBEOP_GITEA=$(CURDIR)/.build/gitea go test -trimpath -count 1 -v -run TestARealGiteaTakesStatusesAndPullRequests ./gitops/host

alertmanager: prerequisites ## build an Alertmanager from its Go module, and try the alerts of notifications on it
	GOBIN=$(CURDIR)/.build/alertmanager go install -trimpath github.com/prometheus/alertmanager/cmd/alertmanager@$(ALERTMANAGER)
	KUBEOP_ALERTMANAGER=$(CURDIR)/.build/alertmanager/alertmanager go test -trimpath -count 1 -v -run TestARealAlertmanagerBeginsAndEndsAlerts ./gitops/notice

editor: prerequisites npm ## install yaml-language-server, and try the JSON schemas of the files in it as an editor does
	@npm install --prefix .build/editor --no-audit --no-fund --silent yaml-language-server@$(YAML_SERVER)
	KUBEOP_YAML_LANGUAGE_SERVER=$(CURDIR)/.build/editor/node_modules/.bin/yaml-language-server go test -trimpath -count 1 -v -run TestAnEditorKnowsTheFiles ./cmd/kubeop/offline

property: prerequisites $(STAGE) ## play 500 random histories of pushes, deletions and restarts, compare 300 commits with their plans, and kill 1,000 evaluations; PROPERTY_HISTORIES=50 fewer, PROPERTY_SEED=n the same again
	go test -trimpath -tags e2e -count 1 -v -timeout 60m $(TESTFLAGS) ./e2e/property
	PLAN_COMMITS=$${PLAN_COMMITS:-300} PLAN_SEED=$${PROPERTY_SEED:-1} go test -trimpath -tags e2e -count 1 -v -timeout 60m -run TestAPlanIsWhatHappens $(TESTFLAGS) ./e2e
	go test -trimpath -count 1 -v -run TestAnEvaluationWhoseProcessIsKilledIsTriedAgain $(TESTFLAGS) ./delivery/release/evaluate -kills 1000

bench: prerequisites $(STAGE) ## count the API requests of 100 Helm apps and hold them to the budgets; BENCHFLAGS='-n 500 -json out.json'
	@$(GO) -o $(BIN)/bench ./e2e/bench && exec $(BIN)/bench $(BENCHFLAGS)

bench-admission: prerequisites $(addprefix $(BIN)/,cluster helm) ## measure how long the API server evaluates the admission policies; ADMISSION_REQUESTS=1000
	ADMISSION_REQUESTS=$${ADMISSION_REQUESTS:-200} go test -trimpath -count 1 -v -timeout 20m $(TESTFLAGS) -run TestAdmissionTakesLittleTime ./controllers

bench-api: prerequisites $(addprefix $(BIN)/,cluster helm) ## read a list of 1,000 apps from the manager, 1,000 times a second on one core, and hold it to the budgets; API_SECONDS=30
	API_SECONDS=$${API_SECONDS:-10} go test -trimpath -count 1 -v -timeout 20m $(TESTFLAGS) -run TestReadsOfALongListTakeLittleTime ./cmd/manager

bench-scale: prerequisites $(STAGE) ## push to 1,000 tenants of 10 apps each and hold the costs to the budgets; BENCHFLAGS='-tenants 30 -idle 30s'
	@$(GO) -o $(BIN)/bench-scale ./e2e/scale && exec $(BIN)/bench-scale $(BENCHFLAGS)

verify: prerequisites $(BIN)/controller-gen $(BIN)/oapi-codegen $(BIN)/helm lint ## check formatting, generated files, go.mod, the chart and the house rules
	@unformatted=$$(gofmt -l $$(ls -d */ | grep -v testdata)); [ -z "$$unformatted" ] || { echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; }
	@rm -rf .build/verify && mkdir -p .build/verify && $(BIN)/controller-gen object crd paths=./api/v1alpha1/... output:dir=.build/verify
	@diff -r $(CRDS) .build/verify -x '*.go' && diff api/v1alpha1/zz_generated.deepcopy.go .build/verify/zz_generated.deepcopy.go || { echo "run make generate"; exit 1; }
	@$(CLIENT) -o .build/verify/client.go docs/api/openapi.json && diff api/client/zz_generated.client.go .build/verify/client.go || { echo "run make generate"; exit 1; }
	@$(BIN)/helm lint --strict --quiet charts/kubeop
	@for hook in hook.type=Ingress hook.type=HTTPRoute,gateway=infra/edge; do $(BIN)/helm lint --strict --quiet charts/kubeop --set hook.host=kubeop.example.com,$$hook; done
	@go mod tidy -diff || { echo "run go mod tidy"; exit 1; }
	@go run ./hack/measure check github.com/kubeop/kubeop hack/measure/allowed.txt $(addprefix ./,$(addsuffix /...,$(CODE)))

lint: $(BIN)/golangci-lint ## hold the house rules (.golangci.yml)
	@GOFLAGS="$$(go env GOFLAGS) -trimpath" $(BIN)/golangci-lint run ./...

fuzz: ## fuzz every parser of outside input for FUZZTIME (20s) each
	@grep -rHo --include='*_test.go' --exclude-dir=cluster '^func Fuzz[A-Za-z0-9_]*' . | while IFS=: read -r file func; do \
	  go test -trimpath -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")"; done

measure: ## print the sizes of files and functions, nesting, and the ratio of tests
	@go run ./hack/measure sizes -v kubeop $(wildcard api delivery gitops controllers internal cmd e2e hack)

##@ A cluster of your own
cluster-up: $(BIN)/cluster ## start a Kubernetes in .build/dev; NODE=real|simulated|none chooses what runs pods
	@$(BIN)/cluster up --dir .build/dev

cluster-down: $(BIN)/cluster ## remove it again
	@$(BIN)/cluster down --dir .build/dev

##@ Releases
image: ## build the operator's image with Docker; IMAGE=registry/name:tag
	docker build --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) -t $(or $(IMAGE),kubeop/operator:$(VERSION)) .

chart: $(BIN)/helm ## package the Helm chart into .build
	@$(BIN)/helm package charts/kubeop -d .build

tools: $(addprefix $(BIN)/,controller-gen golangci-lint helm oapi-codegen) ## build the pinned developer tools

prerequisites: # say what is missing before something fails for it
	@for tool in go git; do command -v $$tool >/dev/null || { echo "$$tool is missing: on Debian, apt-get install git and take Go from https://go.dev/dl"; exit 1; }; done
	@go list -f '{{.GoVersion}}' -m >/dev/null || { echo "kubeop needs Go 1.26 or newer; this is $$(go env GOVERSION)"; exit 1; }

compiler: # the race detector is a C library
	@command -v gcc >/dev/null || { [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gcc libc6-dev; } || { echo "gcc is missing: apt-get install gcc libc6-dev"; exit 1; }

curl: # the examples of the API in docs are run as they are
	@command -v curl >/dev/null || { [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends curl; } || { echo "curl is missing: apt-get install curl"; exit 1; }

# Its package would start a server of its own, which nobody needs: the tests start theirs. 14 and newer have all that the manager uses.
postgresql: # the tests of the manager's store run on a real PostgreSQL, too
	@compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null || { [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	  export DEBIAN_FRONTEND=noninteractive && apt-get install -y -qq --no-install-recommends postgresql-common && sed -i 's/^#\?create_main_cluster *=.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf && \
	  apt-get install -y -qq --no-install-recommends postgresql; } || { echo "PostgreSQL is missing: apt-get install postgresql"; exit 1; }

npm: # yaml-language-server is a program for Node.js
	@command -v npm >/dev/null || { [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm; } || { echo "npm is missing: apt-get install nodejs npm"; exit 1; }

$(BIN)/cluster: $(shell find e2e/cluster -type f -not -name '*_test.go' -not -name '*.md' 2>/dev/null)
	@echo "Building Kubernetes from its Go modules. The first time takes 6 to 8 minutes on two cores, later seconds."
	@cd e2e/cluster && $(GO) -v -ldflags "$$(cat ldflags)" -o $@ . 2>&1 | awk -v about=3100 -f ../../hack/progress.awk
	@touch $@

$(BIN)/helm: LDFLAGS := $(HELM_LDFLAGS)
$(BIN)/%: hack/tools/go.mod
	@echo "Building $* from hack/tools. The first time takes a minute or two."
	@cd hack/tools && $(GO) -ldflags "$(LDFLAGS)" -o $@ $$(go list -f '{{.ImportPath}}' tool | grep '/$*$$') && touch $@

.PHONY: help run run-clean build generate test race e2e versions attack gitea alertmanager editor property bench bench-admission bench-api bench-scale verify lint fuzz measure cluster-up cluster-down image chart tools prerequisites compiler curl postgresql npm
