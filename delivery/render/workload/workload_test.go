package workload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/rendering"
)

// Each testdata/<case>.app.yaml is an App, with its folder in <case>.files; <case>.golden.yaml is what it becomes.
func TestAnImageAppBecomesTheObjectsOfItsGoldenFile(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.app.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range cases {
		name := strings.TrimSuffix(filepath.Base(file), ".app.yaml")
		t.Run(name, func(t *testing.T) {
			manifest, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			settings := Settings{}
			if folder := strings.TrimSuffix(file, ".app.yaml") + ".files"; isFolder(folder) {
				settings.Files = os.DirFS(folder)
			}
			switch name {
			case "gateway":
				settings.Gateway = GatewayOf("infra/public/https")
			case "class", "pod":
				settings.IngressClass = "nginx"
			}
			objects, err := Render(rendering.App(t, string(manifest)), settings)
			if err != nil {
				t.Fatal(err)
			}
			NameJob(rendering.App(t, string(manifest)), objects)
			rendering.Golden(t, strings.TrimSuffix(file, ".app.yaml")+".golden.yaml", rendering.Stream(t, objects))
		})
	}
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func TestRenderIsDeterministic(t *testing.T) {
	manifest, err := os.ReadFile("testdata/full.app.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var first []byte
	for range 20 {
		objects, err := Render(rendering.App(t, string(manifest)), Settings{})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = rendering.Stream(t, objects)
		}
		if diff := cmp.Diff(string(first), string(rendering.Stream(t, objects))); diff != "" {
			t.Fatalf("rendered differently (-first +later):\n%s", diff)
		}
	}
}

func TestObjectsHaveNoEmptyFields(t *testing.T) {
	for _, manifest := range []string{
		`{metadata: {name: web}, spec: {type: Image, image: {reference: nginx}}}`,
		`{metadata: {name: web}, spec: {type: Image, host: a.example.com, image: {reference: nginx, ports: [{name: http, port: 80}]}}}`,
	} {
		objects, err := Render(rendering.App(t, manifest), Settings{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			noEmpty(t, o.GetKind(), o.Object)
		}
	}
}

func noEmpty(t *testing.T, path string, value any) {
	t.Helper()
	switch value := value.(type) {
	case nil:
		t.Errorf("%s is null", path)
	case map[string]any:
		if len(value) == 0 {
			t.Errorf("%s is empty", path)
		}
		for key, inner := range value {
			noEmpty(t, path+"."+key, inner)
		}
	case []any:
		for _, inner := range value {
			noEmpty(t, path+"[]", inner)
		}
	}
}

func TestInvalidImageAppsAreExplained(t *testing.T) {
	tests := map[string]struct{ app, want string }{
		"another type": {`{spec: {type: Raw}}`, "spec.image is missing"},
		"probe without a port": {`{spec: {image: {reference: a, probes: {liveness: {path: /}}}}}`,
			"spec.image.probes.liveness: path and tcp need a port; set port, or spec.image.ports"},
		"probe of a port that is not there": {`{spec: {image: {reference: a, ports: [{name: http, port: 80}], probes: {startup: {tcp: true, port: web}}}}}`,
			`spec.image.probes.startup: spec.image.ports has no port named "web"`},
		"host without ports": {`{spec: {host: a.example.com, image: {reference: a}}}`,
			"spec.host needs spec.image.ports: traffic goes to the first"},
		"host to UDP": {`{spec: {host: a.example.com, image: {reference: a, ports: [{name: dns, port: 53, protocol: UDP}]}}}`,
			"spec.host: traffic goes to port dns, which must be TCP; it is UDP"},
		"a port that is not there": {`{spec: {hosts: [{host: a.example.com, port: web}], image: {reference: a, ports: [{name: http, port: 80}]}}}`,
			`spec.hosts[0]: spec.image.ports has no port named "web"`},
		"a host twice": {`{spec: {hosts: [{host: a.example.com}, {host: a.example.com, path: /a}, {host: a.example.com, path: /a/}], image: {reference: a, ports: [{name: http, port: 80}]}}}`,
			"spec.hosts[2]: a.example.com/a/ is there twice"},
		"a host with two certificates": {`{spec: {hosts: [{host: a.example.com, tlsSecretRef: {name: one}}, {host: a.example.com, path: /a, tlsSecretRef: {name: two}}], image: {reference: a, ports: [{name: http, port: 80}]}}}`,
			"spec.hosts[1]: a.example.com has two certificates, one and two: name one"},
		"one port of the container twice": {`{spec: {image: {reference: a, ports: [{name: http, port: 80}, {name: alt, port: 80, servicePort: 81}]}}}`,
			"spec.image.ports: http and alt are both port 80/TCP of the container: keep one"},
		"a mount twice": {`{spec: {image: {reference: a, secretFiles: [{secretRef: {name: s}, mountPath: /data/}], volumes: [{name: data, mountPath: /data}]}}}`,
			"spec.image.volumes[data].mountPath: /data is where spec.image.secretFiles[0] is mounted already"},
		"files at one place": {`{spec: {image: {reference: a, configFiles: [{path: a.conf, mountPath: /data}], secretFiles: [{secretRef: {name: s}, mountPath: /data}]}}}`,
			"spec.image.secretFiles[0].mountPath: /data is where spec.image.configFiles[0] is mounted already"},
		"a mount over the image": {`{spec: {image: {reference: a, volumes: [{name: data, mountPath: /x/..}]}}}`,
			"spec.image.volumes[data].mountPath: / is where the image itself is: choose a folder below it"},
		"a colon in a mount": {`{spec: {image: {reference: a, volumes: [{name: data, mountPath: "/a:b"}]}}}`,
			"spec.image.volumes[data].mountPath: /a:b must not hold a colon"},
		"replicas of one volume": {`{spec: {image: {reference: a, replicas: 3, volumes: [{name: data, mountPath: /data, size: 1Gi}]}}}`,
			"spec.image.volumes[data]: with accessMode ReadWriteOnce the pods of one node at most can use it, and spec.image.replicas allows up to 3: " +
				"set accessMode: ReadWriteMany where a storage class has it, or run one replica; for a volume per replica bring a StatefulSet with an app of type Raw"},
		"replicas of a claim that exists": {`{spec: {image: {reference: a, replicas: 3, volumes: [{name: data, mountPath: /data, claimName: c}]}}}`,
			"spec.image.volumes[data]: with accessMode ReadWriteOnce the pods of one node at most can use it, and spec.image.replicas allows up to 3: " +
				"set accessMode: ReadWriteMany where a storage class has it, or run one replica; for a volume per replica bring a StatefulSet with an app of type Raw"},
		"claims of its own": {`{metadata: {name: web}, spec: {movedFrom: {app: web}, image: {reference: a}}}`,
			"spec.movedFrom.app: web is the app itself: name the app that has the claims to take over"},
		"autoscaling with one volume": {`{spec: {image: {reference: a, autoscale: {max: 2}, volumes: [{name: data, mountPath: /data, size: 1Gi, accessMode: ReadWriteOncePod}]}}}`,
			"spec.image.volumes[data]: with accessMode ReadWriteOncePod the pods of one node at most can use it, and spec.image.autoscale allows up to 2: " +
				"set accessMode: ReadWriteMany where a storage class has it, or run one replica; for a volume per replica bring a StatefulSet with an app of type Raw"},
		"config files without a repository": {`{spec: {image: {reference: a, configFiles: [{path: a.conf, mountPath: /a}]}}}`,
			"spec.image.configFiles: the app was not declared in a repository, so there are no files beside it"},
		"a long name with a schedule": {`{metadata: {name: ` + strings.Repeat("a", 53) + `}, spec: {image: {reference: a, schedule: "@daily"}}}`,
			"spec.image.schedule: the name of the app has 53 characters; one with a schedule may have 52"},
		"a Job that waits for itself": {`{spec: {image: {reference: a, job: {concurrencyPolicy: Forbid}}}}`,
			"spec.image.job.concurrencyPolicy is for schedule: a Job runs once"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Render(rendering.App(t, tc.app), Settings{})
			rendering.WantError(t, err, tc.want)
		})
	}
}

func TestTheTagOfAnImageIsItsVersion(t *testing.T) {
	tests := map[string]string{
		"nginx":                             "",
		"nginx:1.27":                        "1.27",
		"registry:5000/nginx":               "",
		"registry:5000/team/nginx:1.27":     "1.27",
		"nginx:1.27@sha256:0123456789":      "1.27",
		"nginx@sha256:0123456789":           "",
		"nginx:" + strings.Repeat("1", 64):  "",
		"nginx:_private":                    "",
		"registry:5000/nginx@sha256:012345": "",
	}
	for reference, want := range tests {
		if got := versionOf(reference); got != want {
			t.Errorf("versionOf(%q) = %q, want %q", reference, got, want)
		}
	}
}

func TestAPodOfAHookRunsOnce(t *testing.T) {
	pod := Pod("migrate", &v1alpha1.ImageSource{Reference: "none.example/web:1"}, nil)
	c := pod.Containers[0]
	if pod.RestartPolicy != corev1.RestartPolicyNever || c.Name != "migrate" || c.Image != "none.example/web:1" || !*pod.SecurityContext.RunAsNonRoot || *c.SecurityContext.AllowPrivilegeEscalation {
		t.Errorf("the pod is %+v", pod)
	}
}

// TestAnAppIsScaledByWhatItNames, and by the CPU if it names nothing.
func TestAnAppIsScaledByWhatItNames(t *testing.T) {
	for autoscale, want := range map[string]string{
		"{max: 2}": "cpu", "{max: 2, memory: 70}": "memory", "{max: 2, cpu: 70}": "cpu", "{max: 2, cpu: 70, memory: 70}": "cpu memory",
	} {
		objects, err := Render(rendering.App(t, `{metadata: {name: web}, spec: {type: Image, image: {reference: nginx, autoscale: `+autoscale+`}}}`), Settings{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range objects {
			metrics, _, err := unstructured.NestedSlice(o.Object, "spec", "metrics")
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range metrics {
				name, _, err := unstructured.NestedString(m.(map[string]any), "resource", "name")
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: scaled by %v, want %s", autoscale, got, want)
		}
	}
}
