package migrate

import (
	"fmt"
	"slices"
)

// keptOptions are options of Argo CD that kubeop always behaves like.
var keptOptions = []string{"CreateNamespace=true", "CreateNamespace=false", "ServerSideApply=true", "RespectIgnoreDifferences=true", "ApplyOutOfSyncOnly=true", "PruneLast=true",
	"FailOnSharedResource=true", "SkipDryRunOnMissingResource=true", "Validate=true", "PrunePropagationPolicy=background", "PrunePropagationPolicy=foreground"}

// policies takes how an Application is synchronized and deleted.
func (m *migration) policies(o *object, f *fields, spec values) {
	spec["takeOwnership"] = true
	enabled, given := take[bool](f, "syncPolicy.automated.enabled")
	if !f.has("syncPolicy.automated") && !given || given && !enabled {
		m.report.leaveOut(o, "spec.syncPolicy", "kubeop delivers each commit: set suspend for an app that must wait for a person")
	}
	if heal, _ := take[bool](f, "syncPolicy.automated.selfHeal"); heal {
		put(spec, "drift.mode", "Correct")
	} else {
		put(spec, "drift.mode", "Warn")
	}
	if prune, _ := take[bool](f, "syncPolicy.automated.prune"); !prune {
		spec["prune"] = false
	}
	f.drop("syncPolicy.automated.allowEmpty")
	// Argo CD deletes the objects of an Application only if it has a finalizer.
	if !slices.ContainsFunc(o.GetFinalizers(), func(name string) bool {
		return name == "resources-finalizer.argocd.argoproj.io" || name == "resources-finalizer.argocd.argoproj.io/background"
	}) {
		spec["deletionPolicy"] = "Orphan"
	}
	options, _ := take[[]any](f, "syncPolicy.syncOptions")
	for _, option := range options {
		text := fmt.Sprint(option)
		if !slices.Contains(keptOptions, text) {
			m.report.leaveOut(o, "spec.syncPolicy.syncOptions", fmt.Sprintf("%s has no counterpart; force deletes objects whose fields cannot be changed", printable(text)))
		}
	}
	m.differences(o, f, spec)
}

// differences takes the fields that others may change.
func (m *migration) differences(o *object, f *fields, spec values) {
	var ignore []any
	for _, difference := range f.maps("ignoreDifferences") {
		target := values{}
		for _, name := range []string{"group", "kind", "name", "namespace"} {
			if difference[name] != nil {
				put(target, name, difference[name])
			}
		}
		if paths, ok := difference["jsonPointers"].([]any); ok && len(paths) > 0 {
			rule := values{"paths": paths}
			put(rule, "target", target)
			ignore = append(ignore, rule)
		}
		for _, field := range []string{"jqPathExpressions", "managedFieldsManagers"} {
			if difference[field] != nil {
				m.report.leaveOut(o, "spec.ignoreDifferences", field+" has no counterpart: name the fields as JSON pointers in drift.ignore")
			}
		}
	}
	put(spec, "drift.ignore", ignore)
}
