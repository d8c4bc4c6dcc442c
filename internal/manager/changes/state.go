// Package changes finds out what happens to the objects of the cluster, and enqueues a message for webhooks about each event. It compares
// each object with the state in which it was observed last, which the store keeps: so what happened while no manager ran is found
// afterwards, and nothing is found twice.
package changes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/eventtype"
)

// state is the stored state of an object: only what is needed to find out what happened to it.
type state struct {
	UID string `json:"uid"`
	// Version is the resourceVersion of the object at its last change of state. If an object has a lower one, the caches of this manager are behind
	// those of another one or, if it stays so, the cluster was restored from a backup.
	Version uint64 `json:"version,omitempty"`
	// Generation increases when the spec changes.
	Generation int64 `json:"generation,omitempty"`
	// Tenant is the UID of the tenant that it is of, "" for a tenant, and if a manager observed it that did not keep the UID.
	Tenant string `json:"tenant,omitempty"`
	// Owner is the project of a claim, as acme/shop.
	Owner string `json:"owner,omitempty"`
	// Applied is the revision of an app that was applied last.
	Applied string `json:"applied,omitempty"`
	// Verdict is healthy or failed. Of is the revision and generation that it is about. While it is unknown whether an app is healthy, the last
	// verdict stays.
	Verdict string `json:"verdict,omitempty"`
	Of      string `json:"of,omitempty"`
	// RolledBack is when the release was rolled back last.
	RolledBack string `json:"rolledBack,omitempty"`
}

const (
	healthy = "healthy"
	failed  = "failed"
)

func (s state) text() (string, error) {
	text, err := json.Marshal(s)
	return string(text), err
}

// tenantUID returns the UID of the tenant that gets messages about it.
func (s state) tenantUID(key subject) string {
	if key.kind == "tenant" {
		return s.UID
	}
	return s.Tenant
}

// data is what a message says of an object.
type data struct {
	Tenant   string `json:"tenant,omitempty"`
	Project  string `json:"project,omitempty"`
	App      string `json:"app,omitempty"`
	Hostname string `json:"hostname,omitempty"`
	Revision string `json:"revision,omitempty"`
	Commit   string `json:"commit,omitempty"`
	URL      string `json:"url,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Message  string `json:"message,omitempty"`
}

// happened is an event, of which webhooks get a message.
type happened struct {
	kind string
	at   time.Time
	data data
	// tenant is the UID of the tenant that it happened to. So what happened to an earlier tenant is nothing that the next one of its name learns.
	tenant string
}

// compare returns the state of an object, and what happened to it since it was in another one; was is nil if it was not there. tenant is
// the UID of the object's tenant, "" if it is not known. Events have the time of the object where it has one, and otherwise now.
func compare(key subject, object client.Object, tenant string, was *state, now time.Time) (is state, all []happened) {
	if was != nil && was.UID != string(object.GetUID()) {
		all, was = append(all, deleted(key, *was, now)...), nil
	}
	before := state{}
	if was != nil {
		before = *was
	}
	is = before
	is.UID, is.Tenant = string(object.GetUID()), cmp.Or(tenant, before.Tenant)
	for _, h := range ofObject(key, object, was, &is, now) {
		h.tenant = is.tenantUID(key)
		all = append(all, h)
	}
	if is != before || behind(object, before) {
		is.Version = versionOf(object)
	}
	return is, all
}

// behind reports whether an object is from before the change that was observed last.
func behind(object client.Object, was state) bool { return versionOf(object) < was.Version }

func versionOf(object client.Object) uint64 {
	version, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64) // Kubernetes compares them in this way too.
	return version
}

// ofObject returns what happened to an object, and changes its state.
func ofObject(key subject, object client.Object, was, is *state, now time.Time) (all []happened) {
	about := key.data()
	switch o := object.(type) {
	case *v1alpha1.HostnameClaim:
		is.Owner = o.Spec.Tenant + "/" + o.Spec.Project
		if was == nil {
			about.Tenant, about.Project = o.Spec.Tenant, o.Spec.Project
			all = append(all, happened{kind: eventtype.ClaimCreated, at: o.CreationTimestamp.Time, data: about})
		}
	case *v1alpha1.App:
		return ofApp(o, about, is, now)
	default:
		// The deletion of an object changes its generation too; it has a message when the object is gone.
		if object.GetDeletionTimestamp() == nil || was == nil {
			is.Generation = object.GetGeneration()
		}
		switch {
		case was == nil:
			all = append(all, happened{kind: key.kind + ".created", at: object.GetCreationTimestamp().Time, data: about})
		case was.Generation != is.Generation:
			all = append(all, happened{kind: key.kind + ".updated", at: now, data: about})
		}
	}
	return all
}

// ofApp returns what became of the newest version of an app. While Ready is Unknown, such as while the app waits, the last verdict stays.
func ofApp(a *v1alpha1.App, about data, is *state, now time.Time) (all []happened) {
	if a.DeletionTimestamp != nil {
		return nil
	}
	about.URL = short(a.Status.URL)
	if applied := a.Status.LastAppliedRevision; applied != "" && applied != is.Applied {
		is.Applied = applied
		all = append(all, happened{kind: eventtype.AppApplied, at: now, data: about.at(applied)})
	}
	conditions := a.Status.Conditions
	if back := meta.FindStatusCondition(conditions, v1alpha1.RemediatedCondition); back != nil && back.Reason == v1alpha1.RollbackSucceededReason {
		if at := back.LastTransitionTime.UTC().Format(time.RFC3339) + " " + back.Message; at != is.RolledBack {
			is.RolledBack = at
			failed := about.at(a.Status.LastAttemptedRevision)
			failed.Message = short(back.Message)
			all = append(all, happened{kind: eventtype.AppRolledBack, at: back.LastTransitionTime.Time, data: failed})
		}
	}
	ready := meta.FindStatusCondition(conditions, v1alpha1.ReadyCondition)
	if ready == nil || ready.Status == metav1.ConditionUnknown || !a.StatusIsCurrent(ready) {
		return all
	}
	verdict, kind, revision := healthy, eventtype.AppHealthy, cmp.Or(a.Status.LastAppliedRevision, a.Status.LastAttemptedRevision)
	if ready.Status == metav1.ConditionFalse {
		verdict, kind, revision = failed, eventtype.AppFailed, a.Status.LastAttemptedRevision
	}
	of := fmt.Sprintf("%s generation %d", revision, a.Generation)
	if is.Verdict == verdict && is.Of == of {
		return all
	}
	is.Verdict, is.Of = verdict, of
	about = about.at(revision)
	if verdict == failed {
		about.Reason, about.Message = ready.Reason, short(ready.Message)
	}
	return append(all, happened{kind: kind, at: now, data: about})
}

// deleted returns that an object is gone.
func deleted(key subject, was state, now time.Time) []happened {
	about := key.data()
	if was.Owner != "" {
		about.Tenant, about.Project, _ = strings.Cut(was.Owner, "/")
	}
	return []happened{{key.kind + ".deleted", now, about, was.tenantUID(key)}}
}

// at returns the data with a revision, and its commit if it has one.
func (d data) at(revision string) data {
	d.Revision = short(revision)
	d.Commit = v1alpha1.CommitOf(revision)
	return d
}

// maxText limits each text in a message whose length nothing else limits, in characters. A message has three of them, and JSON writes
// a character in at most six bytes, so no message is larger than eventtype.MaxBody.
const maxText = 1500

// short returns a text of at most maxText characters: the whole text, or its beginning and "…". Invalid UTF-8 becomes U+FFFD.
func short(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	characters := []rune(text)
	if len(characters) <= maxText {
		return text
	}
	return string(characters[:maxText-1]) + "…"
}
