package tree
import ("testing";"strings";"time";"fmt";"testing/fstest")
func TestZZ(t *testing.T){
 n := maxFile
 var eg strings.Builder
 for i:=0; eg.Len()<n-400 && i < 90000; i++ { fmt.Fprintf(&eg, "  - %d\n", i) }
 var eg2 strings.Builder
 for i:=0; eg2.Len()<n-400 && i < 90000; i++ { fmt.Fprintf(&eg2, "  - {a: %d}\n", i) }
 cases := map[string][2]string{
  "ports": {"projects/shop/apps/web/app.yaml","apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata:\n  name: web\nspec:\n  type: Image\n  image:\n    reference: a\n    ports:\n" + strings.Repeat("    - {name: a, port: 1}\n", 30000)},
  "egress": {"tenants/acme/tenant.yaml","apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata:\n  name: acme\nspec:\n  egress:\n"+eg.String()},
  "egressmaps": {"tenants/acme/tenant.yaml","apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata:\n  name: acme\nspec:\n  egress:\n"+eg2.String()},
 }
 for name, s := range cases {
  base, sc := "tenant", Scope{Repository:"acme",Tenant:"acme"}
  if s[0][0]=='t' { base, sc = "platform", Scope{Repository:"platform"} }
  f := baseFiles(t, base); f[s[0]] = &fstest.MapFile{Data: []byte(s[1])}
  at := time.Now(); tr := fresh(f, sc); d := time.Since(at)
  why := ""; if len(tr.Problems) > 0 { why = tr.Problems[0].String() }
  t.Logf("%-14s %8v %d %.120s", name, d.Round(time.Millisecond), len(tr.Problems), why)
 }
}
func BenchmarkCold(b *testing.B) { f := baseFiles(b,"tenant"); for b.Loop() { fresh(f, Scope{Repository:"acme",Tenant:"acme"}) } }
