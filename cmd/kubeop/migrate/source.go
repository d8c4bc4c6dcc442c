package migrate

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// source is where an app comes from.
type source struct {
	// fields of spec.git or spec.helm of an App.
	fields   values
	interval string
	// secret that it needs; "" for none.
	secret  string
	suspend bool
	// ignore are the patterns of files that are left out of the whole repository.
	ignore string
}

// noCloud explains why an identity of a cloud is left out.
const noCloud = "kubeop uses no identity of a cloud: create a Secret with credentials, and name it as secretRef of the app"

// whyOfSources explains fields of sources that have no counterpart.
var whyOfSources = map[string]string{
	"certSecretRef":      "kubeop reads ca.crt, tls.crt and tls.key from the Secret of secretRef: add them to it",
	"proxySecretRef":     "the administrators of kubeop set a proxy for all sources",
	"provider":           noCloud,
	"serviceAccountName": noCloud,
	"verify":             "kubeop verifies commits of Git only: pin helm.digest",
	"recurseSubmodules":  "kubeop fetches no submodules: commit the files themselves",
	"include":            "kubeop reads one repository for an app: make an app of the other repository",
	"sparseCheckout":     "kubeop reads only the folder of the app",
	"ref.semverFilter":   "kubeop chooses among all versions: write a range that only the wanted ones match",
	"passCredentials":    "kubeop sends credentials to the host of the repository only",
	"layerSelector":      "kubeop reads the first layer that is a gzipped tar",
}

// convert returns the source for apps; nil if kubeop has none of that kind. The result is the same for all apps that use it.
func (m *migration) convert(o *object, helm bool) *source {
	if known := m.sources[o]; known != nil && (o.GetKind() != "OCIRepository" || known.fields["oci"] == nil == helm) {
		return known
	}
	report := m.report
	if m.sources[o] != nil {
		report = &Report{} // What is left out was noted the first time.
	}
	f := fieldsOf(o, report)
	s := &source{fields: values{}, interval: f.text("interval")}
	s.suspend, _ = take[bool](f, "suspend")
	f.drop("timeout")
	if provider, _, _ := unstructured.NestedString(f.left, "provider"); provider == "generic" {
		f.drop("provider")
	}
	if secret := f.text("secretRef.name"); secret != "" {
		s.secret = secret
	} else if secret := f.text("certSecretRef.name"); secret != "" {
		s.secret = secret
	}
	switch o.GetKind() {
	case "GitRepository":
		s.git(f)
	case "HelmRepository":
		s.fields["repository"] = f.text("url")
		if f.text("type") == "oci" || strings.HasPrefix(s.fields["repository"].(string), "oci://") {
			f.move(s.fields, [2]string{"insecure", "insecure"})
		}
	case "OCIRepository":
		s.oci(f, helm)
	}
	if s.secret != "" {
		put(s.fields, secretField(o, helm), s.secret)
	}
	f.rest(whyOfSources)
	m.sources[o] = s
	return s
}

func secretField(o *object, helm bool) string {
	if o.GetKind() == "OCIRepository" && !helm {
		return "oci.secretRef.name"
	}
	return "secretRef.name"
}

func (s *source) git(f *fields) {
	f.move(s.fields, [2]string{"url", "url"}, [2]string{"ref", "ref"})
	s.ignore = f.text("ignore")
	if mode := f.text("verify.mode"); mode != "" {
		if mode == "head" {
			mode = "HEAD"
		}
		put(s.fields, "verify.mode", mode)
		f.move(s.fields, [2]string{"verify.secretRef", "verify.secretRef"})
	}
}

// oci converts an artifact: of manifests, or of a chart.
func (s *source) oci(f *fields, helm bool) {
	url := f.text("url")
	if !helm {
		put(s.fields, "oci.url", url)
		f.move(s.fields, [2]string{"ref.tag", "oci.tag"}, [2]string{"ref.semver", "oci.semver"}, [2]string{"ref.digest", "oci.digest"}, [2]string{"insecure", "oci.insecure"})
		return
	}
	if strings.HasPrefix(f.text("layerSelector.mediaType"), "application/vnd.cncf.helm.chart.content.") {
		f.drop("layerSelector")
	}
	s.fields["repository"], s.fields["chart"] = "oci://"+path.Dir(strings.TrimPrefix(url, "oci://")), path.Base(url)
	version := f.text("ref.tag")
	if ranged := f.text("ref.semver"); ranged != "" {
		version = ranged
	}
	put(s.fields, "version", version)
	f.move(s.fields, [2]string{"insecure", "insecure"})
	if digest := f.text("ref.digest"); digest != "" {
		do := "it is the digest of the manifest, and helm.digest is that of the chart's archive"
		if version == "" {
			do += ": write helm.version, or the newest version is installed"
		}
		f.report.leaveOut(f.of, "spec.ref.digest", do)
	}
}
