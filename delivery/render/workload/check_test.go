package workload

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// checked checks an app "web" with the ports http (TCP) and dns (UDP).
func checked(settings Settings, change func(*v1alpha1.App)) error {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	app.Spec.Image = &v1alpha1.ImageSource{Reference: "a/b", Ports: []v1alpha1.ImagePort{{Name: "http", Port: 80}, {Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}}}
	change(app)
	return (&image{app: app, settings: settings, ImageSource: app.Spec.Image}).check()
}

func TestHostsThatCannotWorkAreRefused(t *testing.T) {
	cert := func(name string) *v1alpha1.LocalSecretReference { return &v1alpha1.LocalSecretReference{Name: name} }
	gateway := Settings{Gateway: GatewayOf("infra/public")}
	hosts := func(all ...v1alpha1.AppHost) func(*v1alpha1.App) { return func(a *v1alpha1.App) { a.Spec.Hosts = all } }
	cases := map[string]struct {
		settings Settings
		change   func(*v1alpha1.App)
		want     string
	}{
		"one host":                   {Settings{}, func(a *v1alpha1.App) { a.Spec.Host = "a.example" }, ""},
		"no ports":                   {Settings{}, func(a *v1alpha1.App) { a.Spec.Host, a.Spec.Image.Ports = "a.example", nil }, "spec.host needs spec.image.ports: traffic goes to the first"},
		"no ports, of many":          {Settings{}, func(a *v1alpha1.App) { hosts(v1alpha1.AppHost{Host: "a.example"})(a); a.Spec.Image.Ports = nil }, "spec.hosts needs spec.image.ports: traffic goes to the first"},
		"a port that is none":        {Settings{}, hosts(v1alpha1.AppHost{Host: "a.example", Port: "web"}), `spec.hosts[0]: spec.image.ports has no port named "web"`},
		"a port that is not TCP":     {Settings{}, hosts(v1alpha1.AppHost{Host: "a.example"}, v1alpha1.AppHost{Host: "b.example", Port: "dns"}), "spec.hosts[1]: traffic goes to port dns, which must be TCP; it is UDP"},
		"a host and path twice":      {Settings{}, hosts(v1alpha1.AppHost{Host: "a.example", Path: "/x"}, v1alpha1.AppHost{Host: "a.example", Path: "/x/"}), "spec.hosts[1]: a.example/x/ is there twice"},
		"two paths of one host":      {Settings{}, hosts(v1alpha1.AppHost{Host: "a.example", Path: "/x"}, v1alpha1.AppHost{Host: "a.example", Path: "/y"}), ""},
		"one path of two hosts":      {Settings{}, hosts(v1alpha1.AppHost{Host: "a.example"}, v1alpha1.AppHost{Host: "b.example"}), ""},
		"two certificates of a host": {Settings{}, hosts(v1alpha1.AppHost{Host: "a.example", Path: "/x", TLSSecretRef: cert("x")}, v1alpha1.AppHost{Host: "a.example", TLSSecretRef: cert("z")}), "spec.hosts[1]: a.example has two certificates, x and z: name one"},
		"one certificate of a host":  {Settings{}, hosts(v1alpha1.AppHost{Host: "a.example", Path: "/x", TLSSecretRef: cert("x")}, v1alpha1.AppHost{Host: "a.example", TLSSecretRef: cert("x")}), ""},
		"a certificate at a Gateway": {gateway, hosts(v1alpha1.AppHost{Host: "a.example", TLSSecretRef: cert("x")}), "spec.hosts[0]: tlsSecretRef is not for this platform, whose Gateway infra/public has the certificates: leave it out"},
		"a host at a Gateway":        {gateway, hosts(v1alpha1.AppHost{Host: "a.example"}), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { expect(t, checked(c.settings, c.change), c.want) })
	}
}

func TestAnIngressThatCannotWorkIsRefused(t *testing.T) {
	long := strings.Repeat("a.", 120) + "example"
	with := func(host string, annotations map[string]string) func(*v1alpha1.App) {
		return func(a *v1alpha1.App) {
			a.Spec.Host, a.Spec.Ingress = host, &v1alpha1.AppIngress{Annotations: annotations}
		}
	}
	issuer := map[string]string{"cert-manager.io/issuer": "ca"}
	for name, c := range map[string]struct {
		settings Settings
		change   func(*v1alpha1.App)
		want     string
	}{
		"an issuer":               {Settings{}, with("a.example", issuer), ""},
		"an Ingress at a Gateway": {Settings{Gateway: GatewayOf("infra/public")}, with("a.example", issuer), "spec.ingress is not for this platform, whose Gateway infra/public serves the hosts: leave it out"},
		"an issuer without name":  {Settings{}, with("a.example", map[string]string{"cert-manager.io/issuer": ""}), "spec.ingress.annotations: cert-manager.io/issuer names no issuer"},
		"a long host":             {Settings{}, with(long, issuer), "spec.ingress.annotations: the certificate of " + long},
		"a long host without TLS": {Settings{}, with(long, nil), ""},
	} {
		t.Run(name, func(t *testing.T) { expect(t, checked(c.settings, c.change), c.want) })
	}
}

func TestInitContainersThatCannotWorkAreRefused(t *testing.T) {
	with := func(c v1alpha1.ImageContainer) func(*v1alpha1.App) {
		return func(a *v1alpha1.App) {
			a.Spec.Image.Volumes = []v1alpha1.ImageVolume{{Name: "data", MountPath: "/data"}}
			a.Spec.Image.InitContainers = []v1alpha1.ImageContainer{c}
		}
	}
	mounts := func(all ...v1alpha1.ImageVolumeMount) func(*v1alpha1.App) {
		return with(v1alpha1.ImageContainer{Name: "init", VolumeMounts: all})
	}
	probed := func(p v1alpha1.Probe) func(*v1alpha1.App) {
		return with(v1alpha1.ImageContainer{Name: "side", Probes: v1alpha1.Probes{Readiness: &p}})
	}
	number, name := intstr.FromInt32(80), intstr.FromString("http")
	for name, c := range map[string]struct {
		change func(*v1alpha1.App)
		want   string
	}{
		"the app's own name":    {with(v1alpha1.ImageContainer{Name: "web"}), "spec.image.initContainers[web]: the app's own container has the name web: choose another"},
		"a volume":              {mounts(v1alpha1.ImageVolumeMount{Name: "data", MountPath: "/a"}, v1alpha1.ImageVolumeMount{Name: "data", MountPath: "/b"}), ""},
		"a volume that is none": {mounts(v1alpha1.ImageVolumeMount{Name: "other", MountPath: "/a"}), `spec.image.initContainers[init]: volumeMounts[0]: spec.image.volumes has no volume named "other"`},
		"a place twice":         {mounts(v1alpha1.ImageVolumeMount{Name: "data", MountPath: "/a"}, v1alpha1.ImageVolumeMount{Name: "data", MountPath: "/a/"}), "spec.image.initContainers[init]: volumeMounts[1].mountPath: /a is where volumeMounts[0] is mounted already"},
		"the root":              {mounts(v1alpha1.ImageVolumeMount{Name: "data", MountPath: "/"}), "spec.image.initContainers[init]: volumeMounts[0].mountPath: / is where the image itself is"},
		"a port by number":      {probed(v1alpha1.Probe{TCP: true, Port: &number}), ""},
		"a port of the app":     {probed(v1alpha1.Probe{TCP: true, Port: &name}), "spec.image.initContainers[side]: a probe by path or tcp needs the number of a port"},
		"a command":             {probed(v1alpha1.Probe{Command: []string{"check"}}), ""},
	} {
		t.Run(name, func(t *testing.T) { expect(t, checked(Settings{}, c.change), c.want) })
	}
}

func expect(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || (err != nil && !strings.HasPrefix(err.Error(), want)) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestPortsAreThereOnceForEachProtocol(t *testing.T) {
	with := func(p v1alpha1.ImagePort) func(*v1alpha1.App) {
		return func(a *v1alpha1.App) { a.Spec.Image.Ports = append(a.Spec.Image.Ports, p) }
	}
	expect(t, checked(Settings{}, with(v1alpha1.ImagePort{Name: "again", Port: 80})), "spec.image.ports: http and again are both port 80/TCP of the container: keep one")
	expect(t, checked(Settings{}, with(v1alpha1.ImagePort{Name: "again", Port: 80, Protocol: corev1.ProtocolTCP})), "spec.image.ports: http and again are both port 80/TCP")
	expect(t, checked(Settings{}, with(v1alpha1.ImagePort{Name: "quic", Port: 80, Protocol: corev1.ProtocolUDP})), "")
}

// TestAProbeNamesAPortOfTCP: where a program listens by TCP, too, the number of the port says so.
func TestAProbeNamesAPortOfTCP(t *testing.T) {
	number, http, dns, none := intstr.FromInt32(53), intstr.FromString("http"), intstr.FromString("dns"), intstr.FromString("web")
	for name, c := range map[string]struct {
		probe v1alpha1.Probe
		first string // The name of the first port.
		want  string
	}{
		"the first port":            {v1alpha1.Probe{TCP: true}, "http", ""},
		"the first port, of UDP":    {v1alpha1.Probe{Path: "/"}, "dns", "spec.image.probes.liveness: path and tcp connect by TCP, and port dns is UDP; set the number of a port at which the program listens by TCP"},
		"a port by name":            {v1alpha1.Probe{Path: "/", Port: &http}, "dns", ""},
		"a port of UDP by name":     {v1alpha1.Probe{TCP: true, Port: &dns}, "http", "spec.image.probes.liveness: path and tcp connect by TCP, and port dns is UDP; set the number of a port at which the program listens by TCP"},
		"a port that is none":       {v1alpha1.Probe{TCP: true, Port: &none}, "http", `spec.image.probes.liveness: spec.image.ports has no port named "web"`},
		"a port by number":          {v1alpha1.Probe{TCP: true, Port: &number}, "dns", ""}, // The program may listen at ports that it does not list.
		"a command needs no port":   {v1alpha1.Probe{Command: []string{"check"}}, "dns", ""},
		"a command, whatever it is": {v1alpha1.Probe{Command: []string{"check"}, Port: &none}, "http", ""},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, checked(Settings{}, func(a *v1alpha1.App) {
				a.Spec.Image.Probes.Liveness = &c.probe
				if a.Spec.Image.Ports[0].Name != c.first {
					slices.Reverse(a.Spec.Image.Ports)
				}
			}), c.want)
		})
	}
}

func TestEachPlaceIsMountedOnce(t *testing.T) {
	mounts := func(paths ...string) func(*v1alpha1.App) {
		return func(a *v1alpha1.App) {
			for _, p := range paths {
				a.Spec.Image.SecretFiles = append(a.Spec.Image.SecretFiles, v1alpha1.ImageSecretFiles{MountPath: p, SecretRef: v1alpha1.LocalSecretReference{Name: "x"}})
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.App)
		want   string
	}{
		"two places":            {mounts("/a", "/a/b"), ""},
		"the same place":        {mounts("/a", "/a/"), "spec.image.secretFiles[1].mountPath: /a is where spec.image.secretFiles[0] is mounted already"},
		"the root":              {mounts("/"), "spec.image.secretFiles[0].mountPath: / is where the image itself is"},
		"the root, in disguise": {mounts("/a/.."), "spec.image.secretFiles[0].mountPath: / is where the image itself is"},
		"a colon":               {mounts("/a:b"), "spec.image.secretFiles[0].mountPath: /a:b must not hold a colon"},
		"a volume": {func(a *v1alpha1.App) {
			mounts("/a")(a)
			a.Spec.Image.Volumes = []v1alpha1.ImageVolume{{Name: "data", MountPath: "/a"}}
		}, "spec.image.volumes[data].mountPath: /a is where spec.image.secretFiles[0] is mounted already"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, checked(Settings{}, c.change), c.want) })
	}
}

func TestVolumesOfOneNodeHaveOnePod(t *testing.T) {
	size := resource.MustParse("1Gi")
	with := func(mode corev1.PersistentVolumeAccessMode, replicas int32, v v1alpha1.ImageVolume) func(*v1alpha1.App) {
		return func(a *v1alpha1.App) {
			v.Name, v.MountPath, v.AccessMode = "data", "/data", mode
			a.Spec.Image.Volumes, a.Spec.Image.Replicas = []v1alpha1.ImageVolume{v}, &replicas
		}
	}
	made := v1alpha1.ImageVolume{Size: &size}
	for name, c := range map[string]struct {
		change func(*v1alpha1.App)
		want   string
	}{
		"one replica":               {with("", 1, made), ""},
		"no replica":                {with("", 0, made), ""},
		"two replicas":              {with("", 2, made), "spec.image.volumes[data]: with accessMode ReadWriteOnce the pods of one node at most can use it, and spec.image.replicas allows up to 2"},
		"two, of one pod":           {with(corev1.ReadWriteOncePod, 2, made), "spec.image.volumes[data]: with accessMode ReadWriteOncePod"},
		"two, shared":               {with(corev1.ReadWriteMany, 2, made), ""},
		"two, of pods' own":         {with("", 2, v1alpha1.ImageVolume{}), ""},
		"two, of a claim of others": {with("", 2, v1alpha1.ImageVolume{ClaimName: "x"}), "spec.image.volumes[data]: with accessMode ReadWriteOnce"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, checked(Settings{}, c.change), c.want) })
	}
	expect(t, checked(Settings{}, func(a *v1alpha1.App) { a.Spec.MovedFrom = &v1alpha1.MovedFrom{App: "web"} }), "spec.movedFrom.app: web is the app itself")
	expect(t, checked(Settings{}, func(a *v1alpha1.App) { a.Spec.MovedFrom = &v1alpha1.MovedFrom{App: "old"} }), "")
}

func TestAVolumeNamesItsClaim(t *testing.T) {
	size := resource.MustParse("1Gi")
	app, moved := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	moved.Spec.MovedFrom = &v1alpha1.MovedFrom{App: "old"}
	for name, c := range map[string]struct {
		app  *v1alpha1.App
		v    v1alpha1.ImageVolume
		want string
	}{
		"one that is made":         {app, v1alpha1.ImageVolume{Name: "data", Size: &size}, "web-data"},
		"one that is taken over":   {moved, v1alpha1.ImageVolume{Name: "data", Size: &size}, "old-data"},
		"one of others":            {moved, v1alpha1.ImageVolume{Name: "data", ClaimName: "shared"}, "shared"},
		"none, for the pod's time": {moved, v1alpha1.ImageVolume{Name: "data"}, ""},
	} {
		if got := ClaimOf(c.app, c.v); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestTheNameOfAnAppWithAScheduleLeavesRoomForItsJobs(t *testing.T) {
	named := func(n int) func(*v1alpha1.App) {
		return func(a *v1alpha1.App) {
			a.Name, a.Spec.Image.Schedule, a.Spec.Image.Ports = strings.Repeat("a", n), "@daily", nil
		}
	}
	expect(t, checked(Settings{}, named(52)), "")
	expect(t, checked(Settings{}, named(53)), "spec.image.schedule: the name of the app has 53 characters; one with a schedule may have 52")
}

func TestTheVersionOfAnImageIsItsTagWhereThatCanBeALabel(t *testing.T) {
	for reference, want := range map[string]string{
		"a/b:1.2": "1.2", "a/b": "", "a.example:5000/b": "", "a.example:5000/b:1": "1", "a/b:1@sha256:00": "1", "a/b@sha256:00": "",
		"a/b:" + strings.Repeat("1", 63): strings.Repeat("1", 63), "a/b:" + strings.Repeat("1", 64): "",
	} {
		if got := versionOf(reference); got != want {
			t.Errorf("%s: %q, want %q", reference, got, want)
		}
	}
}

func TestAGatewaySettingHasTwoOrThreeParts(t *testing.T) {
	for setting, want := range map[string]Gateway{"": {}, "a/b": {Namespace: "a", Name: "b"}, "a/b/c": {Namespace: "a", Name: "b", Section: "c"}} {
		if got := GatewayOf(setting); got != want {
			t.Errorf("%q: %+v, want %+v", setting, got, want)
		}
	}
}
