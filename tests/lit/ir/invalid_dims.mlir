// RUN: lathe-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{[C1] #lathe.dims has 1 dims, the tensor 2}}
func.func @rank(%a: tensor<?x4xf32, #lathe.dims<seq>>) { return }

// -----

// expected-error@+1 {{[C2] #lathe.dims says '5' for dim 1, the shape says otherwise}}
func.func @number(%a: tensor<?x4xf32, #lathe.dims<seq, 5>>) { return }

// -----

// expected-error@+1 {{[C2] #lathe.dims says 'seq' for dim 1, the shape says otherwise}}
func.func @symbol(%a: tensor<?x4xf32, #lathe.dims<seq, seq>>) { return }

// -----

// expected-error@+1 {{[C2] #lathe.dims says '8' for dim 0, the shape says otherwise}}
func.func @dynamic(%a: tensor<?xf32, #lathe.dims<8>>) { return }

// -----

// expected-error@+2 {{expected integer value}}
// expected-error@+1 {{terms of a dim are joined by '+' or, for a difference, by the word 'minus': <n minus m>}}
func.func @sign_of_a_symbol(%a: tensor<?xf32, #lathe.dims<n-m>>) { return }

// -----

// expected-error@+1 {{terms of a dim are joined by '+' or, for a difference, by the word 'minus': <n minus m>}}
func.func @no_sign(%a: tensor<?xf32, #lathe.dims<n 1>>) { return }
