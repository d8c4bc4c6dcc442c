//go:build e2e

package guards

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/e2e/stage"
	"github.com/kubeop/kubeop/e2e/tenants"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// signedPath is the part of the cluster's registry whose contents have to be signed.
const signedPath = "signed"

// made pushes a chart or an artifact whose ConfigMap has its name, or an image, and returns its digest.
func made(t *testing.T, kind, name string) string {
	t.Helper()
	files := []sources.Entry{{Name: "a.yaml", Text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"}}
	config, layer := "application/vnd.cncf.flux.config.v1+json", "application/vnd.cncf.flux.content.v1.tar+gzip"
	switch kind {
	case "Image":
		config, layer = ocispec.MediaTypeImageConfig, ocispec.MediaTypeImageLayerGzip
	case "Helm":
		config, layer = "application/vnd.cncf.helm.config.v1+json", "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
		files[0].Name = name + "/templates/a.yaml"
		files = append(files, sources.Entry{Name: name + "/Chart.yaml", Text: "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n"})
	}
	digest, err := platform.PushManifest(t.Context(), signedPath+"/"+name, "1.0.0", config, stage.Layer{MediaType: layer, Content: sources.TarGz(t, files...)})
	must(t, err)
	return digest
}

// TestNothingUnsignedIsDelivered: nothing of a chart or an artifact is used that nobody signed whom the platform trusts. One that is signed is.
func TestNothingUnsignedIsDelivered(t *testing.T) {
	before := versions(t)
	other, err := stage.NewSigner()
	must(t, err)
	refused := map[string]string{"nobody": "it has no signature in its registry", "others": "none of its 1 signatures is by one of the keys of the policy", "twin": "it has no signature in its registry"}
	files := map[string]string{}
	var all []pushed
	for _, kind := range []string{"Helm", "Git"} {
		for _, by := range []string{"us", "nobody", "others", "twin"} {
			name := strings.ToLower(kind) + "-" + by
			digest := made(t, kind, name)
			at := "oci://" + platform.Cluster.Registry.Host + "/" + signedPath
			switch by {
			case "us":
				must(t, platform.Sign(t.Context(), signedPath+"/"+name, digest, signer))
			case "others":
				must(t, platform.Sign(t.Context(), signedPath+"/"+name, digest, other))
			case "twin": // The signature of another one.
				must(t, platform.Sign(t.Context(), signedPath+"/"+name, made(t, kind, strings.ToLower(kind)+"-us"), signer))
			}
			source := "helm: {repository: '" + at + "', chart: " + name + ", version: 1.0.0, insecure: true}"
			if kind == "Git" {
				source = "git: {oci: {url: '" + at + "/" + name + "', tag: 1.0.0, insecure: true}}"
			}
			files["projects/shop/apps/"+name+"/app.yaml"] = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: " + name + "}\nspec:\n  type: " + kind + "\n  " + source + "\n"
			if by != "us" {
				all = append(all, pushed{app: shop + "/" + name, about: "in Git: an unsigned source, " + kind + " signed by " + by, words: refused[by], bad: ofKind("ConfigMap", name)})
			}
		}
	}
	must(t, tenants.Push(t.Context(), own, files))
	nothingIsDelivered(t, all)
	for _, name := range []string{"helm-us", "git-us"} {
		must(t, platform.AppReady(t.Context(), shop, name))
	}
	unchanged(t, before)
}

// TestTheValuesOfAddedLabelsAreThePlatforms: an app that has another value of a label that a policy adds is delivered with the policy's.
func TestTheValuesOfAddedLabelsAreThePlatforms(t *testing.T) {
	forged := guard{name: "an added label", control: "ConfigMap", field: "/metadata/labels", value: "{team: a, cost: '0'}"}.tries("")[0]
	files := map[string]string{}
	names := map[string]string{}
	for i, form := range gitForms {
		if form.kinds != nil {
			continue // The platform makes the objects of such a form.
		}
		name := fmt.Sprintf("added-%d", i)
		names[name] = form.name
		spec, beside := form.write(t, forged, name)
		appFiles(files, "shop", name, spec, beside)
	}
	must(t, folders.Push(t.Context(), "Change"))
	must(t, tenants.Push(t.Context(), own, files))
	for name, form := range names {
		about := "an added label, " + form
		tried.add(about, "")
		o := ofKind("ConfigMap", name)
		added(t, about, o)
		if strings.Contains(files["projects/shop/apps/"+name+"/app.yaml"], "type: Helm") {
			continue // By default, kubeop reports what others change of a chart's objects.
		}
		for _, change := range []string{`{"cost":"0"}`, `{"cost":null}`, `null`} {
			tried.add(about+", changed to "+change, "")
			must(t, as(t, bot).Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":`+change+`}}`))))
			added(t, about+", changed to "+change, o)
		}
	}
}

// added waits until an object has the label's value of the policy.
func added(t *testing.T, about string, o *unstructured.Unstructured) {
	t.Helper()
	if err := stage.Until(t.Context(), 90*time.Second, about, func(ctx context.Context) error {
		live := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: o.GetAPIVersion(), Kind: o.GetKind()}}
		if err := platform.Client.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
			return err
		}
		if live.Labels["cost"] != "7" {
			return errors.New("its labels are " + fmt.Sprint(live.Labels))
		}
		return nil
	}); err != nil {
		t.Errorf("ESCAPE: %v", err)
	}
}
