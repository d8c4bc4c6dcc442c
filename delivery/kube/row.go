package kube

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// row is the packed metadata of an object, without annotations, managed fields and owners. There are thousands of release records with the
// same dozen label keys, so the keys are stored once for all of them.
type row struct {
	name, version string
	uid           types.UID
	created       int64                 // Unix seconds, which is the API server's precision.
	keys          unique.Handle[string] // The labels' keys, sorted and joined.
	values        string                // Their values in the same order, joined.
}

// joint separates joined labels; neither keys nor values can contain it.
const joint = "\x00"

// pack makes a row of an object; it returns a row unchanged.
func pack(object any) (*row, error) {
	if packed, ok := object.(*row); ok {
		return packed, nil
	}
	o, err := meta.Accessor(object)
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of what was watched: %w", err)
	}
	labels := o.GetLabels()
	keys := make([]string, 0, len(labels))
	for key := range labels {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	values := make([]string, len(keys))
	for i, key := range keys {
		values[i] = labels[key]
	}
	return &row{
		name: o.GetName(), version: o.GetResourceVersion(), uid: o.GetUID(), created: o.GetCreationTimestamp().Unix(),
		keys: unique.Make(strings.Join(keys, joint)), values: strings.Join(values, joint),
	}, nil
}

func (r *row) labels() map[string]string {
	if r.keys.Value() == "" {
		return nil
	}
	keys, values := strings.Split(r.keys.Value(), joint), strings.Split(r.values, joint)
	labels := make(map[string]string, len(keys))
	for i, key := range keys {
		labels[key] = values[i]
	}
	return labels
}

func (r *row) metadata(namespace string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: r.name, Namespace: namespace, UID: r.uid, ResourceVersion: r.version, Labels: r.labels(),
		CreationTimestamp: metav1.NewTime(time.Unix(r.created, 0)),
	}}
}

// owner is the release that a record belongs to, by the label of Helm's driver for Secrets, and the release's app.
type owner struct{ release, app string }

// ownerBy returns the owner that an object's labels name; the zero owner if the object is no record.
func ownerBy(labels map[string]string) owner {
	if labels["owner"] != "helm" {
		return owner{}
	}
	return owner{release: labels["name"], app: labels[v1alpha1.AppLabel]}
}
