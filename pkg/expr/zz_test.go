package expr_test
import ("testing";"fmt";"time";"github.com/kubectl-maint/kubectl-maint/pkg/expr")
func TestZZ(t *testing.T){ for _, n := range []int{1000,10000,30000,100000} { for _, f := range []string{"lists.range(%d).map(x, [x]).size()", "lists.range(%d).map(x, x).size()", "lists.range(%d).all(x, x >= 0)", "lists.range(%d).size()"} { t0:=time.Now(); _, err := expr.Value(fmt.Sprintf(f,n), vars()); fmt.Println(n, f, time.Since(t0), err)}}}
