package render
import ("testing";"time";"fmt";"strings")
func TestZZ(t *testing.T){
 for _, n := range []int{1000,2000,4000,5000,8000} {
 var b strings.Builder
 for i:=range n { fmt.Fprintf(&b,"---\n{apiversion: v1, apiVersion: v1, kind: A, metadata: {name: a%d}}\n",i)}
 files:=repository(map[string]string{"kustomization.yaml":"resources: [a.yaml]","a.yaml":b.String()})
 s:=time.Now(); _,err:=Dir(files,"."); t.Log(n,len(b.String()),time.Since(s),err)
 }
}
