package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// snapshot is the content of a namespace at one time.
type snapshot struct {
	apps map[string]*v1alpha1.App
	maps map[string]corev1.ConfigMap
	// revisions of each release, oldest first.
	revisions map[string][]revision
}

// revision is a release's revision in Helm's storage.
type revision struct {
	number        int
	status, first string
	// why is its description, in which Helm records how the action ended.
	why string
}

// snapshot reads releases before objects, so the objects of an action that it finds finished are complete.
func (k *killed) snapshot() snapshot {
	k.t.Helper()
	s := snapshot{apps: map[string]*v1alpha1.App{}, maps: map[string]corev1.ConfigMap{}, revisions: map[string][]revision{}}
	apps, secrets, maps := &v1alpha1.AppList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}
	for _, list := range []client.ObjectList{apps, secrets, maps} {
		if err := k.List(k.t.Context(), list, client.InNamespace(k.namespace)); err != nil {
			k.t.Fatal(err)
		}
	}
	for i, a := range apps.Items {
		s.apps[a.Name] = &apps.Items[i]
	}
	for _, m := range maps.Items {
		s.maps[m.Name] = m
	}
	for _, secret := range secrets.Items {
		if name := secret.Labels["name"]; secret.Labels["owner"] == "helm" {
			s.revisions[name] = append(s.revisions[name], k.revision(secret))
		}
	}
	for _, all := range s.revisions {
		slices.SortFunc(all, func(a, b revision) int { return a.number - b.number })
	}
	return s
}

// revision decodes a record of Helm: JSON, compressed with gzip, in base64.
func (k *killed) revision(secret corev1.Secret) revision {
	k.t.Helper()
	unzipped, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(secret.Data["release"])))
	if err != nil {
		k.t.Fatalf("reading %s: %v", secret.Name, err)
	}
	var record struct {
		Version int
		Info    struct {
			Status, Description string
			FirstDeployed       string `json:"first_deployed"`
		}
	}
	if err := json.NewDecoder(unzipped).Decode(&record); err != nil {
		k.t.Fatalf("reading %s: %v", secret.Name, err)
	}
	return revision{number: record.Version, status: record.Info.Status, first: record.Info.FirstDeployed, why: record.Info.Description}
}
